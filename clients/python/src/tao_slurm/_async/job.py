"""A job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from uuid import UUID, uuid4

from tao_slurm import models
from tao_slurm._async.operations import AsyncOperations
from tao_slurm._async.streams import follow as follow_stream
from tao_slurm._async.transport import AsyncTransport
from tao_slurm._async.waiting import wait_until
from tao_slurm._events import log_lines, read_event
from tao_slurm._lines import Lines, LogLine
from tao_slurm.errors import JobCanceled, JobFailed
from tao_slurm.problems import JobNotFound
from tao_slurm.progress import Bar, Progress
from tao_slurm.results import Results


class AsyncJob:
    """A job of the service. It holds only the id: each method asks the service."""

    def __init__(self, transport: AsyncTransport, id: UUID) -> None:
        self._transport = transport
        self._api = AsyncOperations(transport)
        self.id = id
        """The job's id, the same across all attempts."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.id)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncJob) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    async def details(self) -> models.JobView:
        """The whole job."""
        return await self._api.get_job(self.id)

    async def status(self) -> models.StatusView:
        """What happens now and why: `status`, `phase`, `message`, `progress`, and the times."""
        return await self._api.get_job_status(self.id)

    async def wait(self, timeout: float | None = None, *, progress: Progress = False) -> models.StatusView:
        """Waits until the job has ended, and returns its last status, whatever it is.

        With `timeout` it raises `WaitTimeout` after about so many seconds; the job goes on. A paused job does not end until it is
        resumed. `progress=True` shows a bar, and a function is called with each new status.
        """
        bar = Bar(progress)
        try:
            return await wait_until(
                self._transport,
                f"/jobs/{self.id}/status",
                models.StatusView,
                lambda status: status.phase == models.Phase.ENDED,
                timeout=timeout,
                show=bar.show,
            )
        finally:
            bar.close()

    async def result(self, timeout: float | None = None, *, progress: Progress = False) -> Results:
        """Waits until the job is `Done`, and returns its results.

        Raises `JobFailed` if it ends in `Error`, and `JobCanceled` if it ends in `Canceled`; `results` then returns what there is.
        """
        status = await self.wait(timeout, progress=progress)
        if status.status == models.Status.CANCELED:
            raise JobCanceled(self, status)
        if status.status != models.Status.DONE:
            raise JobFailed(self, status)
        return await self.results()

    async def results(self) -> Results:
        """The results that were found so far, also those of a job that failed."""
        found = await self._api.get_job_results(self.id)
        status = await self.status()
        tasks = [task async for task in self.tasks] if status.tasks is not None else []
        return Results(found, tasks)

    async def logs(
        self,
        *,
        follow: bool = False,
        tail: int | None = None,
        stream: str | None = None,
        role: str | None = None,
        task: int | None = None,
        attempt: int | None = None,
    ) -> AsyncIterator[LogLine]:
        """The lines of the job's logs.

        With `follow` it begins with the first line, or with the last `tail` of each log, and ends with the job, after all its
        attempts; each line comes once, also after a broken connection. Without `follow` it ends with the last line that is there now: the
        last `tail` lines, by default 500. `stream` is `out` or `err`, `role` the name of a step, service or role, and `task` a
        task of an array.
        """
        if not follow:
            text = await self._api.get_job_logs(self.id, stream=stream, role=role, task=task, attempt=attempt, tail=tail)
            for line in log_lines(text):
                yield line
            return
        lines = Lines()
        query = {"follow": True, "stream": stream, "role": role, "task": task, "attempt": attempt, "tail": tail}
        async for event in follow_stream(self._transport, f"/jobs/{self.id}/logs", query):
            for line in lines.take(event.name, event.data):
                yield line
        for line in lines.end():
            yield line

    async def events(
        self, *, follow: bool = False, after: int = 0, kind: str | Sequence[str] | None = None
    ) -> AsyncIterator[models.EventView]:
        """What happened to the job, oldest first, from the event number `after` on. With `follow` it ends with the job."""
        path = f"/jobs/{self.id}/events"
        if follow:
            async for event in follow_stream(self._transport, path, {"after": after, "kind": kind}):
                if event.name == "reset":
                    after = 0
                found = read_event(event)
                if found is not None and found.seq > after:
                    after = found.seq
                    yield found
            return
        while True:
            page = await self._api.get_job_events(self.id, after=after, limit=1000, kind=[kind] if isinstance(kind, str) else kind)
            for found in page.events:
                yield found
            if len(page.events) < 1000:
                return
            after = page.next_after

    @property
    def tasks(self) -> AsyncIterator[models.TaskView]:
        """The tasks of the job's array, by number. A job without an array has one."""
        return self.find_tasks()

    async def find_tasks(self, status: models.TaskStatus | str | None = None) -> AsyncIterator[models.TaskView]:
        """The tasks in this state, such as `error`; all of them without one."""
        token: str | None = None
        while True:
            page = await self._api.list_tasks(self.id, status=status, limit=200, page_token=token)
            for task in page.tasks:
                yield task
            token = page.next_page_token
            if token is None:
                return

    async def attempts(self) -> list[models.AttemptView]:
        """Each attempt with its Slurm id, its outcome and the decision about the next one."""
        return (await self._api.get_job_attempts(self.id)).attempts

    async def diagnosis(self, *, attempt: int | None = None, task: int | None = None) -> models.DiagnosisView:
        """The first cause of a failure. A job that has not failed raises `problems.NotFailed`."""
        return await self._api.get_job_diagnosis(self.id, attempt=attempt, task=task)

    async def cancel(self, *, tasks: str | None = None) -> models.StatusView:
        """Cancels the job, or these `tasks` of its array, such as `"3,7-9"` or `"pending"`."""
        return await self._api.cancel_job(self.id, None if tasks is None else {"tasks": tasks})

    async def pause(self) -> models.StatusView:
        """Takes the job off the cluster, and keeps its checkpoints."""
        return await self._api.pause_job(self.id)

    async def resume(self) -> models.StatusView:
        """Continues a paused job: a training from its newest checkpoint; other work starts over."""
        return await self._api.resume_job(self.id, idempotency_key=str(uuid4()))

    async def retry(
        self, *, tasks: str | None = None, secret_env: Mapping[str, str] | None = None, idempotency_key: str | None = None
    ) -> models.StatusView:
        """Runs a job in `Error` or `Canceled` again, or these `tasks` of its array. A job with secrets needs them again."""
        body = {"tasks": tasks, "secret_env_vars": secret_env}
        given = {name: value for name, value in body.items() if value is not None}
        return await self._api.retry_job(self.id, given or None, idempotency_key=idempotency_key or str(uuid4()))

    async def delete(self, *, artifacts: bool = False) -> None:
        """Deletes a job that has ended; with `artifacts` also its files on the cluster."""
        try:
            await self._api.delete_job(self.id, artifacts=artifacts or None)
        except JobNotFound as problem:
            # An earlier try may have deleted it, and its answer was lost.
            if problem.tries == 1:
                raise
