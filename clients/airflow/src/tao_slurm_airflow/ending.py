"""What a task shows and returns when its job has ended."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Protocol

from airflow.sdk.exceptions import AirflowException, AirflowFailException
from tao_slurm import Job, JobFailed, TaoSlurmError, models, problems

from tao_slurm_airflow.secrets import hide
from tao_slurm_airflow.text import one_line

__all__ = ["finish"]

LAST_LINES = 30
LONGEST_LINE = 500
# XCom is a column of Airflow's database.
LARGEST_RESULTS = 1024 * 1024


class Log(Protocol):
    """A logger of Airflow's, whatever library it is of."""

    def info(self, event: str, *args: Any) -> Any: ...
    def warning(self, event: str, *args: Any) -> Any: ...
    def error(self, event: str, *args: Any) -> Any: ...


def finish(job: Job, log: Log, secrets: Collection[str], *, is_killed: bool) -> Any:
    """The results of a job that is `Done`; an exception for every other end.

    A job that somebody canceled in the service fails the task without another try.
    """
    try:
        status = job.status()
    except problems.JobNotFound:
        raise AirflowFailException(f"job {job.id} was deleted") from None
    if status.status == models.Status.DONE:
        log.info("job %s is done: %s", job.id, one_line(status.message, LONGEST_LINE))
        return results(job, status, log)
    show_failure(job, log, secrets)
    text = one_line(hide(str(JobFailed(job, status)), secrets), 2000)
    if status.status == models.Status.CANCELED and not is_killed:
        raise AirflowFailException(text)
    raise AirflowException(text)


def results(job: Job, status: models.StatusView, log: Log) -> Any:
    """An object of the values by their names; of an array, a list of objects that also have the parameters of the tasks."""
    found = job.results()
    for task in found:
        for name, problem in task.problems.items():
            log.warning("task %s has no result %s: %s", task.task, one_line(name, 100), one_line(problem, LONGEST_LINE))
    values: Any = dict(found[0])
    if status.tasks is not None:
        values = [{"task": task.task, "parameters": dict(task.parameters), "results": dict(task)} for task in found]
    size = len(json.dumps(values))
    if size > LARGEST_RESULTS:
        log.warning("the results have %d bytes, too many for XCom; GET /jobs/%s/results has them", size, job.id)
        return None
    return values


def show_failure(job: Job, log: Log, secrets: Collection[str]) -> None:
    """Logs the cause and the last lines. What cannot be read does not hide the failure."""
    try:
        log.error("cause: %s", one_line(hide(cause(job.diagnosis()), secrets), 2000))
    except TaoSlurmError as error:
        log.info("no cause is known: %s", one_line(str(error), LONGEST_LINE))
    try:
        lines = [one_line(hide(line, secrets), LONGEST_LINE) for line in job.logs(tail=LAST_LINES)]
    except TaoSlurmError as error:
        log.warning("the job's log cannot be read: %s", one_line(str(error), LONGEST_LINE))
        return
    log.info("the last lines of job %s:", job.id)
    for line in lines[-LAST_LINES:]:
        log.info("| %s", line)


def cause(diagnosis: models.DiagnosisView) -> str:
    place = f" on {diagnosis.node}" if diagnosis.node else ""
    first = f": {diagnosis.first.line}" if diagnosis.first else ""
    return f"{diagnosis.rule}{place}{first}. {diagnosis.why} {diagnosis.advice}"
