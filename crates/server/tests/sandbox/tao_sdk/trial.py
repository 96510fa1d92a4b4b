"""A trial of the experiment: waits for `go` in its results directory, then reports a metric as TAO's trainings do, or fails.

Argument: its specification.
"""

import json
import os
import sys
import time
from pathlib import Path

spec = json.loads(Path(sys.argv[1]).read_text())
own = Path(os.environ["TAO_RESULTS_ROOT"], os.environ["TAO_JOB_ID"])
results = Path(spec["results_dir"])
assert own in results.parents, results
assert os.environ["HF_TOKEN"] == "hf_hidden"


def report(**line: object) -> None:
    with (results / "status.json").open("a") as file:
        file.write(json.dumps(line) + "\n")


report(status="STARTED", epoch=0, max_epoch=1)
while not (own / "go").exists():
    time.sleep(0.2)
if (own / "fail").exists():
    report(status="FAILURE", message="the trial fails")
    sys.exit("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB")
(results / "model_epoch_001.pth").write_text("weights")
report(status="SUCCESS", epoch=1, max_epoch=1, kpi={"val_acc": 1 - abs(spec["train"]["lr"] - 0.01)})
print("trained")
