"""TAO's `AutoMLRunner` searches a learning rate with jobs of the service. Address and token are in the environment.

Arguments: the directory of its state, `new` or `resume`, and the mounts of the trials as JSON. Prints the result as JSON.
"""

import json
import logging
import sys
from pathlib import Path

from tao_automl.runner import AutoMLRunner
from tao_slurm.tao import TaoSlurmSDK

workspace, how, mounts = sys.argv[1:]
logging.basicConfig(level=logging.INFO)
sdk = TaoSlurmSDK()


def accuracy(_: object, job_id: str) -> float | None:
    return sdk.get_job_metrics(job_id).get("val_acc")


runner = AutoMLRunner(sdk=sdk, skill_dir=Path(__file__).parent / "skill", action="train", poll_interval=1)
result = runner.run(
    workspace_path=str(next(Path(workspace).glob("run_*"))) if how == "resume" else workspace,
    resume=how == "resume",
    automl_settings={
        "algorithm": "bayesian",
        "metric": "val_acc",
        "direction": "maximize",
        "session_id": "sandbox",
        "automl_max_recommendations": 4,
        "run_baseline": False,
        "run_final_evaluation": False,
    },
    eval_fn=accuracy,
    gpu_count=0,
    cpus=1,
    time="20m",
    env_vars={"PYTHONHOME": "/usr"},
    mounts=json.loads(mounts),
)
print(json.dumps(result))
