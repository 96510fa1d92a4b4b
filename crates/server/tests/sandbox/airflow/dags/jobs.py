"""A DAG with three jobs, one whose worker dies, and one task that needs the only slot of the pool."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, task
from tao_slurm_airflow.operator import TaoSlurmOperator

SMALL: dict[str, Any] = {"gpus": 0, "cpus": 1, "time": "10m", "deferrable": True}
HELD = 'until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do sleep 0.2; done; '
# The second attempt waits for another file.
HELD_TWICE = 'cd $TAO_API_RESULTS_DIR/$TAO_API_JOB_ID; wait=go; [ ! -e tried ] || wait=again; until [ -e $wait ]; do sleep 0.2; done; touch tried; '
LOSS = [{"name": "loss", "regex": r"loss (\S+)"}]
AGAIN: dict[str, Any] = {"retries": 1, "retry_delay": timedelta(seconds=1)}

with DAG("jobs"):
    TaoSlurmOperator(
        task_id="done",
        command=HELD + "echo loss 0.25 of {{ run_id }} $HF_TOKEN",
        secret_env={"HF_TOKEN": "{{ var.value.hf_token }}"},
        results=LOSS,
        **SMALL,
    )
    TaoSlurmOperator(
        task_id="failed",
        command=HELD_TWICE + "echo no such file >&2; echo it has $HF_TOKEN; exit 3",
        secret_env={"HF_TOKEN": "{{ var.value.hf_token }}"},
        **SMALL,
        **AGAIN,
    )
    TaoSlurmOperator(task_id="killed", command="sleep 600", **SMALL)

with DAG("worker"):
    TaoSlurmOperator(task_id="lost", command=HELD + "echo loss 0.5", results=LOSS, **SMALL | AGAIN | {"deferrable": False})

with DAG("slot"):

    @task
    def free() -> None:
        print("this has the slot of the pool")

    free()
