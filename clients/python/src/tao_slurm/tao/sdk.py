"""The SDK object."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from tao_sdk.models import Job, JobStatus
from tao_sdk.monitor import JobMonitor

from tao_slurm import ApiError, Client, RequestError, WaitTimeout, models
from tao_slurm import Job as ServiceJob
from tao_slurm._text import one_line
from tao_slurm.arguments import JobArguments
from tao_slurm.problems import JobNotFound, NoLogYet, NotFailed
from tao_slurm.tao.files import ClusterFiles, cluster_view
from tao_slurm.tao.request import Files, environment, mount
from tao_slurm.tao.watching import JobHandler
from tao_slurm.tao.words import UNKNOWN, job_status, results_dir, row, uri, words_of_service

LOG = logging.getLogger("tao_slurm")
LABEL = {"tao-sdk": "job"}
MOST_LINES = 10_000
OWN_NAMES = {"gpus": "gpu_count", "nodes": "num_nodes", "env": "env_vars"}
"""Arguments of `Client.submit` that have other names here."""
OWN_ARGUMENTS = {"image", "command", "inputs", "outputs", "hooks", "partition", "account", "mounts", "spec", *OWN_NAMES.values()}


class TaoSlurmSDK:
    """Runs the jobs of TAO's SDK and of AutoML by a tao-slurm service, in the place of `tao_sdk.platforms.slurm.SlurmSDK`.

    - `client` is a `Client` of this package; without it address and token come from the environment or a profile.
    - `cluster`, `partition` and `account` are those of all jobs that name none. Default: what the service is configured with.
    - `poll_interval` and `epoch_milestone_interval` are for jobs with `hooks`, whose states are in `state_file`, if it is given.
    - `cancel_timeout` is how long `cancel_job` waits for the cluster's confirmation, in seconds.
    - `listing_partition` and `listing_timeout` are for the small jobs that list files.

    It stores nothing on this machine: the service knows the jobs. While the service does not answer, each method raises
    `tao_slurm.Unreachable` after the client's `patience`.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        cluster: str | None = None,
        partition: str | None = None,
        account: str | None = None,
        poll_interval: int = 30,
        epoch_milestone_interval: int = 10,
        state_file: str | os.PathLike[str] | None = None,
        cancel_timeout: float = 60.0,
        listing_partition: str | None = None,
        listing_timeout: float = 600.0,
    ) -> None:
        self._client = client or Client()
        self._place: dict[str, Any] = {name: value for name, value in {"cluster": cluster, "partition": partition, "account": account}.items() if value}
        self._monitor = JobMonitor(poll_interval, epoch_milestone_interval, os.fspath(state_file or os.devnull))
        self._cancel_timeout = cancel_timeout
        listing = {"partition": listing_partition} if listing_partition else {}
        self._files = ClusterFiles(self._client, self._place | listing, listing_timeout)
        self._deleted: set[str] = set()
        self.handler = JobHandler(self)
        """The handler for `JobMonitor.watch` of TAO's SDK."""

    def __repr__(self) -> str:
        return f"TaoSlurmSDK({self._client.url!r})"

    def create_job(
        self,
        image: str,
        command: str,
        gpu_count: int = 1,
        env_vars: Mapping[str, Any] | None = None,
        inputs: Mapping[str, str] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        hooks: Mapping[str, Callable[..., Any]] | None = None,
        num_nodes: int = 1,
        partition: str | None = None,
        account: str | None = None,
        mounts: Sequence[str | Mapping[str, Any]] | None = None,
        spec: Mapping[str, Any] | None = None,
        **arguments: Any,
    ) -> Job:
        """Submits a job. When this returns, the service has stored it, once.

        - Without an `image` the command runs on the node itself.
        - `gpu_count` is the number of GPUs on each node.
        - `env_vars` are variables of the program. The credentials of this environment that the SDK knows (`HF_TOKEN`, `NGC_KEY`, `ACCESS_KEY`,
          `SECRET_KEY` and `S3_ENDPOINT_URL`) are sent as secrets under the names that its programs read.
        - `inputs` are `{path in the container: source}`: a path of the cluster is mounted, a URI of S3, NGC or Hugging Face is fetched first.
        - Each path of `outputs` is the job's results directory, in the container.
        - `hooks` are `on_complete`, `on_error` and `on_epoch_milestone`, which a thread of this process calls.
        - `mounts` are added to those of the cluster: `"/path:/inside:ro"`, or objects with `host_path` and `container_path`.
        - Other arguments are those of `Client.submit`, such as `time`, `cpus`, `memory` and `labels`; `spec` has fields of the API's `JobRequest`.

        If the answer is lost, the exception has the job's id as `tao_job_id`.
        """
        check_names(arguments)
        id = str(uuid4())
        given = {"cluster": arguments.pop("cluster", None), "partition": partition, "account": account}
        place: dict[str, Any] = self._place | {name: value for name, value in given.items() if value}
        view = cluster_view(self._client, place.get("cluster"))
        root = f"{view.base_results_dir.rstrip('/')}/results"
        files = Files(inputs, outputs, f"{root}/{id}")
        variables, secrets = environment(env_vars, id, root)
        added = [mount(each) for each in mounts or ()] + files.mounts
        fields: dict[str, Any] = {**(spec or {}), "id": id}
        if added and not image:
            raise ValueError("mounts, inputs and outputs need an image")
        if added:
            container = fields.get("container", {})
            fields["container"] = {**container, "mounts": [*container.get("mounts", view.container_mounts), *added]}
        arguments["labels"] = {**arguments.get("labels", {}), **LABEL}
        arguments["secret_env"] = {**secrets, **arguments.get("secret_env", {})}
        if files.required:
            fields["inputs"] = [*fields.get("inputs", ()), *files.required]
        if image:
            arguments["image"] = image
        try:
            self._client.submit(
                files.command(command),
                spec=fields,
                idempotency_key=id,
                gpus=gpu_count,
                nodes=num_nodes,
                env=variables,
                **place,
                **arguments,
            )
            job = Job(id=id, network_arch="", action="", workspace_id="slurm", backend_type="slurm", results_dir=uri(f"{root}/{id}"))
            if hooks:
                self._monitor.watch(job, dict(hooks), self.handler)
                self._monitor.start()
        except BaseException as error:
            if not was_refused(error):
                # AutoMLRunner cancels the job by this, and looks for it when it resumes.
                setattr(error, "tao_job_id", id)
                setattr(error, "tao_launch_uncertain", True)
            raise
        return job

    def get_job(self, job_id: str) -> dict[str, Any] | None:
        """The job, with the keys of TAO's job store; `None` if there is no such job."""
        job = self._job(job_id)
        try:
            return None if job is None else row(job.details())
        except JobNotFound:
            return None

    def list_jobs(self, status: str | None = None) -> list[dict[str, Any]]:
        """The jobs that this class has submitted with the caller's token, on any machine, newest first; those with a `status` of the SDK."""
        words = words_of_service(status)
        return [] if words == [] else [row(view) for view in self._client.jobs(status=words, labels=LABEL)]

    def get_job_status(self, job_id: str) -> JobStatus:
        """The job's status: `Pending`, `Running`, `Paused`, `Canceling`, `Complete`, `Error`, `Canceled`; `Unknown` if there is no such job.

        Trouble between the service and the cluster does not end a job: the status stays, and the message says so.
        """
        job = self._job(job_id)
        try:
            if job is not None:
                return job_status(job.status())
        except JobNotFound:
            pass
        return JobStatus(job_id=str(job_id), status=UNKNOWN, message="Job not found")

    def get_job_logs(self, job_id: str, tail: int | None = None) -> str:
        """The last lines of the newest attempt's logs, at most 10,000 of each; empty if there are none yet."""
        job = self._job(job_id)
        lines = MOST_LINES if tail is None else min(max(tail, 1), MOST_LINES)
        try:
            return "" if job is None else self._client.api.get_job_logs(job.id, tail=lines)
        except (JobNotFound, NoLogYet):
            return ""

    def iter_job_log_chunks(self, job_id: str, chunk_size: int = 256 * 1024) -> Iterator[str]:
        """The whole logs of the newest attempt of a job that has ended, in parts; of another job, what `get_job_logs` returns."""
        job = self._job(job_id)
        try:
            status = None if job is None else job.status()
            if job is None or status is None or status.phase != models.Phase.ENDED or status.attempt == 0:
                yield self.get_job_logs(job_id)
                return
            part, size = [], 0
            for line in job.logs(follow=True, attempt=status.attempt):
                part.append(f"{line}\n")
                size += len(line) + 1
                if size >= chunk_size:
                    yield "".join(part)
                    part, size = [], 0
            yield "".join(part)
        except (JobNotFound, NoLogYet):
            return

    def cancel_job(self, job_id: str) -> bool:
        """Cancels the job, and waits for the cluster's confirmation. True if it ends, also if it had ended before."""
        job = self._job(job_id)
        if job is None:
            return False
        try:
            job.cancel()
            job.wait(self._cancel_timeout)
        except JobNotFound:
            return False
        except WaitTimeout:
            LOG.warning("job %s: the cluster has not confirmed yet that it is canceled", job.id)
        return True

    def get_failure_analysis(self, job_id: str) -> dict[str, Any] | None:
        """The first cause of the failure, from a search of all logs; `None` for a job that has not failed."""
        job = self._job(job_id)
        try:
            found = None if job is None else job.diagnosis()
        except (JobNotFound, NotFailed):
            found = None
        if found is None:
            return None
        return {
            "reason": found.rule,
            "pattern": found.rule,
            "match": found.first.line if found.first else "",
            # The service has retried what another attempt may help.
            "retriable": False,
            "category": str(found.category),
            "why": found.why,
            "advice": found.advice,
            "node": found.node,
            "rank": found.rank,
            "log": found.first.log if found.first else None,
            "offset": found.first.offset if found.first else None,
            "attempt": found.attempt,
        }

    def get_job_metrics(self, job_id: str) -> dict[str, float]:
        """The newest value of each metric in the job's `status.json`, for an `eval_fn`; NaN and infinite values are left out."""
        job = self._job(job_id)
        try:
            metrics = {} if job is None else job.status().progress.metrics
        except JobNotFound:
            metrics = {}
        return {name: float(value) for name, value in metrics.items() if isinstance(value, (int, float))}

    def get_job_results_dir(self, job_id: str) -> str:
        """The job's results directory on the cluster, as `lustre:///path`; empty if there is no such job."""
        job = self._job(job_id)
        try:
            return "" if job is None else results_dir(job.details())
        except JobNotFound:
            return ""

    def get_checkpoints(self, job_id: str) -> list[str]:
        """The paths of the job's checkpoints on the cluster, the newest one last. A small job lists them."""
        results = self.get_job_results_dir(job_id)
        return self._files.checkpoints(results) if results else []

    def check_path(self, remote_path: str) -> bool:
        """Whether the path exists on the cluster and the service's user may read it."""
        return self._files.exists(remote_path)

    def list_path(self, remote_path: str) -> list[str]:
        """The names in a directory of the cluster; empty if it does not exist. A small job lists them."""
        return self._files.names(remote_path)

    def validate_artifact_retention(self, **platform_kwargs: Any) -> bool:
        """Checks, before the first job, that `create_job` takes these arguments and that the token may delete jobs."""
        check_names(platform_kwargs)
        if not {"write", "admin"} & {str(scope) for scope in self._client.me().scopes}:
            raise PermissionError("the token needs the scope write: it must delete the files of jobs")
        return True

    def delete_job_artifacts(self, job_id: str) -> bool:
        """Deletes a job that has ended, with its files on the cluster. True if the service does it, or this object did it before.

        The job is gone afterwards: its status is `Unknown`.
        """
        if job_id in self._deleted:
            return True
        job = self._job(job_id)
        if job is None:
            return False
        try:
            job.delete(artifacts=True)
        except ApiError as error:
            LOG.warning("the files of job %s stay: %s", job.id, one_line(str(error), 500))
            return False
        self._deleted.add(job_id)
        return True

    def _job(self, job_id: str) -> ServiceJob | None:
        try:
            return self._client.job(UUID(str(job_id)))
        except ValueError:
            return None


def check_names(arguments: Mapping[str, Any]) -> None:
    for name in sorted(arguments):
        if name in OWN_NAMES:
            raise TypeError(f"create_job has no argument {name!r}; use {OWN_NAMES[name]!r}")
        if name not in OWN_ARGUMENTS and name not in JobArguments.__annotations__:
            raise TypeError(f"create_job has no argument {one_line(name, 100)!r}")


def was_refused(error: BaseException) -> bool:
    """Whether a submission that raised this is certainly not stored."""
    # An earlier try may have stored it, and its answer was lost.
    return isinstance(error, RequestError) or (isinstance(error, ApiError) and error.status < 500 and error.tries == 1)
