"""The trigger: it waits for the end of a job in the triggerer, which runs many of them in one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from tao_slurm import AsyncClient, problems

from tao_slurm_airflow.hook import FOREVER, TaoSlurmHook
from tao_slurm_airflow.text import one_line

__all__ = ["TaoSlurmTrigger"]

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
# Airflow fails a task that resumes before its scheduler has read that the worker ended (apache/airflow#72716).
SHORTEST_WAIT = 10.0
# Airflow gives `on_kill` 30 s by default.
KILL_PATIENCE = 25.0


class TaoSlurmTrigger(BaseTrigger):
    """Follows the events of a job, and fires once when it has ended.

    Nothing else ends it: after any failure it reads the connection again, and goes on. `execution_timeout` of the task is a limit.
    """

    def __init__(self, job_id: str, tao_slurm_conn_id: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.job_id = job_id
        self.tao_slurm_conn_id = tao_slurm_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"job_id": self.job_id, "tao_slurm_conn_id": self.tao_slurm_conn_id}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        began, pause = monotonic(), FIRST_PAUSE
        while True:
            try:
                status = await self._follow()
                break
            except Exception as error:
                text = one_line(f"{type(error).__name__}: {error}", 500)
                self.log.warning("job %s cannot be followed; again in %.0f s: %s", self.job_id, pause, text)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        await asyncio.sleep(max(0.0, began + SHORTEST_WAIT - monotonic()))
        yield TriggerEvent({"job_id": self.job_id, "status": status})

    async def _follow(self) -> str | None:
        """The status that the job ended in; `None` for a job that was deleted."""
        async with await self._client(FOREVER) as client:
            job, seen = client.job(self.job_id), 0
            try:
                while True:
                    async for event in job.events(follow=True, after=seen, kind="status"):
                        seen = event.seq
                        # Its message may quote the job, whose secrets are not known here.
                        self.log.info("job %s: %s", self.job_id, one_line(str(event.data.get("status")), 100))
                    status = await job.status()
                    if status.phase == "ended":
                        return str(status.status)
                    await asyncio.sleep(FIRST_PAUSE)
            except problems.JobNotFound:
                return None

    async def on_kill(self) -> None:
        """Cancels the job, because a user marked or cleared the task."""
        if await self._is_moved():
            self.log.info("another triggerer follows job %s", self.job_id)
            return
        self.log.info("the task was killed: canceling job %s", self.job_id)
        async with await self._client(KILL_PATIENCE) as client:
            await client.job(self.job_id).cancel()

    async def _is_moved(self) -> bool:
        """Whether the task still waits.

        A triggerer whose heartbeat was late loses its triggers to another one, and Airflow then calls `on_kill` here, too.
        """
        task = self.task_instance
        if task is None:
            return False
        try:
            return await task_state(task.dag_id, task.run_id, task.task_id, task.map_index) == "deferred"
        except Exception as error:
            self.log.warning("the state of the task is not known: %s", one_line(f"{type(error).__name__}: {error}", 500))
            return False

    async def _client(self, patience: float) -> AsyncClient:
        return await TaoSlurmHook(self.tao_slurm_conn_id).aget_conn(patience=patience)


async def task_state(dag_id: str, run_id: str, task_id: str, map_index: int | None) -> str | None:
    """The state of a task now. A task that was cleared has none."""
    from airflow.sdk.execution_time.comms import GetTaskStates, TaskStatesResult
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    asked = GetTaskStates(dag_id=dag_id, run_ids=[run_id], task_ids=[task_id], map_index=map_index)
    answer = await SUPERVISOR_COMMS.asend(asked)
    if not isinstance(answer, TaskStatesResult):
        raise RuntimeError(f"no states, but {type(answer).__name__}")
    # The keys of mapped tasks have the index, and the question allows one task.
    return next(iter(answer.task_states.get(run_id, {}).values()), None)
