"""The client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any
from uuid import UUID, uuid4

import httpx
from typing_extensions import Self, Unpack

from tao_slurm import models
from tao_slurm._answer import Answer, Created, CreatedPipeline
from tao_slurm._async.job import AsyncJob
from tao_slurm._async.operations import AsyncOperations
from tao_slurm._async.pipeline import AsyncPipeline
from tao_slurm._async.streams import follow as follow_stream
from tao_slurm._async.transport import AsyncTransport
from tao_slurm._body import Body
from tao_slurm._events import read_event
from tao_slurm._text import clean
from tao_slurm.arguments import JobArguments, Spec, job_request, pipeline_request
from tao_slurm.settings import read_settings

LOG = logging.getLogger("tao_slurm")


class AsyncClient:
    """A connection to the service.

    The arguments override the environment and the profiles of the configuration file: see `tao_slurm.settings`.

    - `timeout` is the limit of one try of a request, in seconds.
    - `patience` is how long a request is repeated while the service does not answer, in seconds. A submission is stored once, however
      often it is sent.
    - `verify` is that of httpx: `True`, or an `ssl.SSLContext` with the certificates of the site.
    - `transport` is one of httpx, for tests.

    One client may be used by many threads and tasks.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        profile: str | None = None,
        timeout: float = 30.0,
        patience: float = 300.0,
        verify: Any = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        settings = read_settings(url, token, profile)
        self._transport = AsyncTransport(settings, timeout=timeout, patience=patience, transport=transport, verify=verify)
        self.api: AsyncOperations = AsyncOperations(self._transport)
        """Every call of the API, by its name in the OpenAPI document."""

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._transport.settings.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._transport.aclose()

    async def submit(
        self,
        command: str | Sequence[str] | None = None,
        *,
        spec: Spec | None = None,
        idempotency_key: str | None = None,
        **arguments: Unpack[JobArguments],
    ) -> AsyncJob:
        """Submits a job. When this returns, the service has stored it, once.

        `command` is a script for bash, or a list of words. `tao_slurm.arguments.JobArguments` describes the other arguments;
        `spec` has fields of the API's `JobRequest`, which they override. A repeated call submits another job, unless it has the same
        `idempotency_key`.
        """
        return await self._submit(job_request(command, spec, arguments), idempotency_key)

    async def sweep(
        self,
        command: str | Sequence[str] | None = None,
        *,
        matrix: Mapping[str, Sequence[Any]] | None = None,
        values: Sequence[Mapping[str, Any]] | None = None,
        indices: str | None = None,
        max_parallel: int | None = None,
        spec: Spec | None = None,
        idempotency_key: str | None = None,
        **arguments: Unpack[JobArguments],
    ) -> AsyncJob:
        """Submits a job whose command runs once for each combination of `matrix`, for each object of `values`, or for each number of
        `indices`, such as `"0-99"`.

        A task has its parameters as environment variables. At most `max_parallel` tasks run at once. The other arguments are
        those of `submit`.
        """
        lists = None if matrix is None else {name: list(each) for name, each in matrix.items()}
        tasks: dict[str, Any] = {"matrix": lists, "values": values, "indices": indices, "max_parallel": max_parallel}
        array = {name: value for name, value in tasks.items() if value is not None}
        return await self._submit(job_request(command, spec, arguments, {"array": array}), idempotency_key)

    async def _submit(self, body: dict[str, Any], idempotency_key: str | None) -> AsyncJob:
        created = (await self._create("/jobs", body, idempotency_key)).read(Created)
        for warning in created.warnings:
            LOG.warning("job %s: %s", created.id, clean(warning.detail))
        return AsyncJob(self._transport, created.id)

    async def _create(self, path: str, body: dict[str, Any], idempotency_key: str | None) -> Answer:
        """Only a few fields of the answer are read: what was stored must not get lost."""
        headers = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return await self._transport.request("POST", path, headers=headers, body=Body(body), repeatable=True)

    async def pipeline(
        self,
        jobs: Mapping[str, Mapping[str, Any] | models.JobRequest],
        *,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncPipeline:
        """Submits jobs that need each other, all or none.

        Each job is an object with `command` and the arguments of `submit`, or a `JobRequest`. Its `needs` may name other jobs of the
        pipeline.
        """
        body = pipeline_request(jobs, name, labels)
        created = (await self._create("/pipelines", body, idempotency_key)).read(CreatedPipeline)
        return self._pipeline(created)

    def _pipeline(self, pipeline: CreatedPipeline | models.PipelineView) -> AsyncPipeline:
        return AsyncPipeline(self._transport, pipeline.id, {job.name: job.id for job in pipeline.jobs})

    async def open_pipeline(self, id: UUID | str) -> AsyncPipeline:
        """The pipeline with this id."""
        return self._pipeline(await self.api.get_pipeline(id))

    async def pipelines(self) -> AsyncIterator[models.PipelineSummary]:
        """All pipelines, newest first."""
        token: str | None = None
        while True:
            page = await self.api.list_pipelines(limit=200, page_token=token)
            for pipeline in page.pipelines:
                yield pipeline
            token = page.next_page_token
            if token is None:
                return

    async def validate(
        self,
        command: str | Sequence[str] | None = None,
        *,
        live: bool = False,
        spec: Spec | None = None,
        **arguments: Unpack[JobArguments],
    ) -> models.ValidationView:
        """Checks a job as `submit` would, and stores nothing. Returns the effective job, its batch script and warnings.

        With `live` the cluster is asked, too.
        """
        return await self.api.validate_job(job_request(command, spec, arguments), live=live or None)

    def job(self, id: UUID | str) -> AsyncJob:
        """The job with this id. This asks nothing: the first method does."""
        return AsyncJob(self._transport, id if isinstance(id, UUID) else UUID(id))

    async def jobs(
        self,
        *,
        status: str | Sequence[str] | None = None,
        cluster: str | Sequence[str] | None = None,
        owner: str | Sequence[str] | None = None,
        partition: str | Sequence[str] | None = None,
        rule: str | Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        q: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        sort: str | None = None,
    ) -> AsyncIterator[models.JobSummary]:
        """The jobs that match, newest first, of all pages. `q` is a part of the name or of a label, or the beginning of the id."""
        token: str | None = None
        while True:
            page = await self.api.list_jobs(
                status=several(status),
                cluster=several(cluster),
                owner=several(owner),
                partition=several(partition),
                rule=several(rule),
                label=[f"{key}:{value}" for key, value in (labels or {}).items()],
                q=q,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                limit=200,
                page_token=token,
            )
            for job in page.jobs:
                yield job
            token = page.next_page_token
            if token is None:
                return

    async def events(
        self, *, after: str | None = None, cluster: str | Sequence[str] | None = None, kind: str | Sequence[str] | None = None
    ) -> AsyncIterator[models.EventView]:
        """The events of all jobs from now on, or after the event with the id `after`. It does not end."""
        query = {"after": after, "cluster": cluster, "kind": kind}
        async for event in follow_stream(self._transport, "/events", query):
            found = read_event(event)
            if found is not None:
                yield found

    async def clusters(self) -> list[models.ClusterView]:
        """The clusters with their health. The first one is the default."""
        return (await self.api.list_clusters()).clusters

    async def cluster(self, name: str) -> models.ClusterView:
        """The cluster with this name."""
        return await self.api.get_cluster(name)

    async def partitions(self, cluster: str) -> list[models.PartitionView]:
        """The partitions of a cluster: limits, nodes by state, GPUs and features."""
        return (await self.api.list_partitions(cluster)).partitions

    async def me(self) -> models.CallerView:
        """Whose token this is, and what it allows."""
        return await self.api.get_me()


def several(value: str | Sequence[str] | None) -> Sequence[str] | None:
    return [value] if isinstance(value, str) else value
