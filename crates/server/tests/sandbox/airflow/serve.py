"""Runs the scheduler, the triggerer and the API server of Airflow as children of one process, which has imported them once.

The DAGs are stored once, so there is no DAG processor. SIGHUP restarts the triggerer. Settings are in the environment. Argument: the port.
"""

import os
import signal
import sys
from types import FrameType

from airflow import settings
from airflow.api_fastapi import main  # noqa: F401
from airflow.cli.cli_parser import get_parser
from airflow.dag_processing.manager import DagFileProcessorManager  # noqa: F401
from airflow.jobs import scheduler_job_runner, triggerer_job_runner  # noqa: F401
from airflow.sdk.execution_time import supervisor, task_runner  # noqa: F401
from airflow.utils.db import initdb
import tao_slurm_airflow.operator  # noqa: F401

PARTS = {
    "api-server": ["api-server", "--host", "127.0.0.1", "--port", sys.argv[1], "--workers", "1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
running: dict[str, int] = {}
# Airflow logs to standard output, which is the caller's.
says = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def start(name: str) -> None:
    running[name] = os.fork()
    if running[name] == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        settings.reconfigure_orm()
        call(PARTS[name])
        os._exit(0)


def call(words: list[str]) -> None:
    arguments = get_parser().parse_args(words)
    arguments.func(arguments)


def restart_triggerer(number: int, frame: FrameType | None) -> None:
    os.kill(running["triggerer"], signal.SIGTERM)
    os.waitpid(running["triggerer"], 0)
    start("triggerer")
    print("triggerer restarted", file=says, flush=True)


initdb()
call(["dags", "reserialize"])
settings.dispose_orm()
for name in PARTS:
    start(name)
signal.signal(signal.SIGHUP, restart_triggerer)
print("started", file=says, flush=True)
while True:
    signal.pause()
