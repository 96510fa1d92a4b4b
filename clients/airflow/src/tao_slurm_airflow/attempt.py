"""Which job is that of a try: Airflow's task store remembers it, from before its submission on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from airflow.sdk.execution_time.context import NEVER_EXPIRE
from tao_slurm import Client, Job, problems

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = ["Attempt", "find_or_submit"]

LOG = logging.getLogger(__name__)
KEY = "tao_slurm_job"


@dataclass
class Attempt:
    """A try of a task, and the job that earlier tries have left.

    Airflow raises `max_tries` when a user clears a task, and leaves it when it tries again by itself.
    """

    store: Any
    number: int
    max_tries: int
    job: str | None = None
    """The job that was submitted, or was about to be."""
    seen_number: int = 0
    """The try that remembered the job."""
    seen_max_tries: int = 0

    @classmethod
    def read(cls, context: Context) -> Attempt:
        ti, store = context["ti"], context["task_state_store"]
        attempt = cls(store, ti.try_number, ti.max_tries)
        kept: Any = store.get(KEY)
        if isinstance(kept, dict):
            attempt.job = str(kept["job"])
            attempt.seen_number, attempt.seen_max_tries = int(kept["try"]), int(kept["max_tries"])
        return attempt

    @property
    def is_cleared(self) -> bool:
        """Whether a user cleared the task since the job was submitted."""
        return self.job is not None and self.seen_max_tries != self.max_tries

    def remember(self, job: str) -> None:
        self.job = job
        self.store.set(KEY, {"job": job, "try": self.number, "max_tries": self.max_tries}, retention=NEVER_EXPIRE)


def find_or_submit(client: Client, attempt: Attempt, body: dict[str, Any], take: Callable[[str], object]) -> Job:
    """The job of this try. `take` gets its id before anything is submitted."""
    if attempt.job is not None and attempt.is_cleared:
        cancel_left(client, attempt.job)
        attempt.job = None
    is_new_try = attempt.job is not None and attempt.number > attempt.seen_number
    id = attempt.job or str(uuid4())
    take(id)
    attempt.remember(id)
    try:
        # The service stores one job for an id, so this also finds the job.
        job, is_same = client.submit(spec=body | {"id": id}), True
    except problems.IdConflict:
        job, is_same = client.job(id), False
    if not is_new_try:
        return job
    LOG.info("job %s was submitted by an earlier try", id)
    status = job.status()
    if status.status == "Canceling":
        status = job.wait()
    if status.phase != "ended" or status.status == "Done":
        if not is_same:
            LOG.warning("the task has changed since; job %s goes on as it was submitted", id)
        return job
    if is_same and is_run_again(job, body, attempt.number):
        return job
    fresh = str(uuid4())
    take(fresh)
    attempt.remember(fresh)
    return client.submit(spec=body | {"id": fresh})


def cancel_left(client: Client, id: str) -> None:
    """Cancels what the task had before it was cleared. Usually that was done, by the worker or the triggerer."""
    try:
        client.job(id).cancel()
    except problems.JobNotFound:
        pass


def is_run_again(job: Job, body: dict[str, Any], number: int) -> bool:
    """Runs a job in `Error` or `Canceled` again under its id, so that it goes on from its checkpoint.

    The service has erased the secrets. If it needs more than those of `secret_env`, another job is submitted instead.
    """
    try:
        job.retry(secret_env=body.get("secret_env_vars"), idempotency_key=f"airflow-{job.id}-{number}")
    except (problems.InvalidRequest, problems.WrongState) as problem:
        LOG.info("job %s is not run again: %s", job.id, problem)
        return False
    return True
