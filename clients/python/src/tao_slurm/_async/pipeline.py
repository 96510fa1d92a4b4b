"""A pipeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from tao_slurm import models
from tao_slurm._async.job import AsyncJob
from tao_slurm._async.operations import AsyncOperations
from tao_slurm._async.streams import follow as follow_stream
from tao_slurm._async.transport import AsyncTransport
from tao_slurm._async.waiting import wait_until
from tao_slurm._events import read_event
from tao_slurm.errors import PipelineFailed
from tao_slurm.progress import Bar, Progress
from tao_slurm.results import Results

FINAL = (models.Status.DONE, models.Status.ERROR, models.Status.CANCELED)


class AsyncPipeline:
    """A pipeline of the service. `pipeline["train"]` is its job of this name."""

    def __init__(self, transport: AsyncTransport, id: UUID, jobs: Mapping[str, UUID]) -> None:
        self._transport = transport
        self._api = AsyncOperations(transport)
        self.id = id
        """The pipeline's id."""
        self.jobs: Mapping[str, AsyncJob] = {name: AsyncJob(transport, job) for name, job in jobs.items()}
        """Its jobs by their names, each after those that it needs."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.id)!r}, jobs={list(self.jobs)})"

    def __getitem__(self, name: str) -> AsyncJob:
        return self.jobs[name]

    async def status(self) -> models.PipelineView:
        """Its status, and the status and message of each job."""
        return await self._api.get_pipeline(self.id)

    async def wait(self, timeout: float | None = None, *, progress: Progress = False) -> models.PipelineView:
        """Waits until all jobs have ended, and returns the last state, whatever it is. See `AsyncJob.wait`."""
        bar = Bar(progress)
        try:
            return await wait_until(
                self._transport,
                f"/pipelines/{self.id}",
                models.PipelineView,
                lambda pipeline: pipeline.status in FINAL,
                timeout=timeout,
                show=bar.show,
            )
        finally:
            bar.close()

    async def result(self, timeout: float | None = None, *, progress: Progress = False) -> dict[str, Results]:
        """Waits until the pipeline is `Done`, and returns the results of its jobs that ran, by name.

        Raises `PipelineFailed` if it ends in `Error` or `Canceled`.
        """
        state = await self.wait(timeout, progress=progress)
        if state.status != models.Status.DONE:
            raise PipelineFailed(self, state)
        return {job.name: await AsyncJob(self._transport, job.id).results() for job in state.jobs if not job.skipped}

    async def cancel(self) -> models.PipelineView:
        """Cancels all jobs that have not ended."""
        return await self._api.cancel_pipeline(self.id)

    async def retry(self, secrets: Mapping[str, Mapping[str, str]] | None = None) -> models.PipelineView:
        """Runs its jobs in `Error` or `Canceled` again. `secrets` has the secret variables of each job that had some, by name.

        If the answer is lost, the request is not sent again: read `status` before you repeat it.
        """
        jobs: dict[str, Any] = {name: {"secret_env_vars": values} for name, values in (secrets or {}).items()}
        return await self._api.retry_pipeline(self.id, {"jobs": jobs} if jobs else None)

    async def events(self, *, kind: str | Sequence[str] | None = None) -> AsyncIterator[models.EventView]:
        """What happens to its jobs, from the beginning, and on and on: the stream does not end with the pipeline."""
        query = {"pipeline": self.id, "after": "0", "kind": kind}
        async for event in follow_stream(self._transport, "/events", query):
            found = read_event(event)
            if found is not None:
                yield found
