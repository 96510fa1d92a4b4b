"""The operator: one task of Airflow is one job of the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout
from airflow.sdk.log import mask_secret
from tao_slurm import Job, TaoSlurmError
from tao_slurm.arguments import job_request

from tao_slurm_airflow.attempt import Attempt, find_or_submit
from tao_slurm_airflow.ending import finish
from tao_slurm_airflow.hook import FOREVER, TaoSlurmHook
from tao_slurm_airflow.link import TaoSlurmJobLink, job_page
from tao_slurm_airflow.secrets import hide, secret_values
from tao_slurm_airflow.text import one_line
from tao_slurm_airflow.trigger import TaoSlurmTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context
    from tao_slurm import models
    from tao_slurm.arguments import Spec

__all__ = ["TaoSlurmOperator"]

# Airflow kills a worker's process five seconds after the signal that calls `on_kill`.
KILL_PATIENCE = 4.0


class TaoSlurmOperator(BaseOperator):
    """Runs a job on a Slurm cluster, and ends as the job does.

    The arguments from `command` on are those of `tao_slurm.Client.submit`. `spec` is a whole job or a part of it, as the API's
    `JobRequest`; the arguments override it. A task with `deferrable` waits in the triggerer and holds no slot of a worker or a pool.

    XCom has the job's id as `job_id`, and the results as the return value: an object of a job, a list of objects of an array.
    """

    arguments: ClassVar[tuple[str, ...]] = (
        "name", "labels", "image", "gpus", "nodes", "time", "cpus", "memory", "gpu_type", "cluster", "partition", "account", "qos", "begin",
        "env", "secret_env", "inputs", "setup", "files", "workdir", "launcher", "results", "needs", "steps", "services", "restart",
    )  # fmt: skip
    template_fields: Sequence[str] = ("command", "spec", "tao_slurm_conn_id", *arguments)
    template_fields_renderers: ClassVar[dict[str, str]] = {"command": "bash", "spec": "json"}
    operator_extra_links = (TaoSlurmJobLink(),)
    ui_color = "#dcecd2"

    def __init__(
        self,
        *,
        command: str | Sequence[str] | None = None,
        spec: Spec | None = None,
        name: str | None = None,
        labels: Mapping[str, str] | None = None,
        image: str | None = None,
        gpus: int | str | None = None,
        nodes: int | str | None = None,
        time: float | str | timedelta | None = None,
        cpus: int | str | None = None,
        memory: str | Mapping[str, str] | None = None,
        gpu_type: str | None = None,
        cluster: str | None = None,
        partition: str | Sequence[str] | None = None,
        account: str | None = None,
        qos: str | None = None,
        begin: str | None = None,
        env: Mapping[str, str] | None = None,
        secret_env: Mapping[str, str] | None = None,
        inputs: Sequence[str] | None = None,
        setup: Sequence[str] | None = None,
        files: Mapping[str, Any] | None = None,
        workdir: str | None = None,
        launcher: str | Mapping[str, Any] | None = None,
        results: Sequence[Mapping[str, Any]] | None = None,
        needs: Sequence[str | Mapping[str, Any]] | None = None,
        steps: Sequence[Mapping[str, Any]] | None = None,
        services: Sequence[Mapping[str, Any]] | None = None,
        restart: Mapping[str, Any] | None = None,
        tao_slurm_conn_id: str = TaoSlurmHook.default_conn_name,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.spec = spec
        self.name = name
        self.labels = labels
        self.image = image
        self.gpus = gpus
        self.nodes = nodes
        self.time = time
        self.cpus = cpus
        self.memory = memory
        self.gpu_type = gpu_type
        self.cluster = cluster
        self.partition = partition
        self.account = account
        self.qos = qos
        self.begin = begin
        self.env = env
        self.secret_env = secret_env
        self.inputs = inputs
        self.setup = setup
        self.files = files
        self.workdir = workdir
        self.launcher = launcher
        self.results = results
        self.needs = needs
        self.steps = steps
        self.services = services
        self.restart = restart
        self.tao_slurm_conn_id = tao_slurm_conn_id
        self.deferrable = deferrable
        self._job_id: str | None = None
        self._is_killed = False
        self._secrets: set[str] = set()

    @cached_property
    def hook(self) -> TaoSlurmHook:
        return TaoSlurmHook(self.tao_slurm_conn_id)

    def execute(self, context: Context) -> Any:
        """Submits the job, or finds that of an earlier try."""
        body = self._body(context)
        attempt = Attempt.read(context)
        with self.hook.get_conn() as client:
            job = find_or_submit(client, attempt, body, self._take)
            status = job.status()
            context["ti"].xcom_push("job_id", self._job_id)
            self.log.info("job %s: %s, see %s", job.id, status.status, self.job_page)
        if self._is_killed:
            self._cancel()
        if status.phase != "ended" and self.deferrable:
            trigger = TaoSlurmTrigger(str(job.id), self.tao_slurm_conn_id)
            self.defer(trigger=trigger, method_name=self.execute_complete.__name__, timeout=self.execution_timeout)
        with self.hook.get_conn(patience=FOREVER) as client:
            waiting = client.job(job.id)
            waiting.wait(progress=self._show)
            return self._finish(waiting)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Goes on when the trigger has fired."""
        self._take(str(event["job_id"]))
        self._body(context)
        with self.hook.get_conn() as client:
            return self._finish(client.job(event["job_id"]))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Cancels the job if it can't be waited for any longer: Airflow doesn't call `on_kill` then."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except (TaskDeferralTimeout, TaskDeferralError) as error:
            is_last = context["ti"].try_number > context["ti"].max_tries
            if (job_id := Attempt.read(context).job) and (is_last or isinstance(error, TaskDeferralTimeout)):
                self._take(job_id)
                self._cancel()
            raise

    def on_kill(self) -> None:
        """Cancels the job. In the triggerer, `TaoSlurmTrigger.on_kill` does."""
        self._is_killed = True
        self._cancel()

    def _cancel(self) -> None:
        if self._job_id is None:
            return
        self.log.info("canceling job %s", self._job_id)
        try:
            with self.hook.get_conn(patience=KILL_PATIENCE, timeout=KILL_PATIENCE) as client:
                client.job(self._job_id).cancel()
        except TaoSlurmError as error:
            self.log.error("job %s was not canceled: %s", self._job_id, error)

    def _take(self, job_id: str) -> None:
        self._job_id = job_id
        self.job_page = job_page(self.hook.settings.url, job_id)

    def _finish(self, job: Job) -> Any:
        return finish(job, self.log, self._secrets, is_killed=self._is_killed)

    def _show(self, status: models.StatusView) -> None:
        self.log.info("job %s: %s", status.id, one_line(hide(status.message, self._secrets), 500))

    def _body(self, context: Context) -> dict[str, Any]:
        """The request. Its labels say which task it is of, and its secrets are masked from now on."""
        given = {name: getattr(self, name) for name in self.arguments if getattr(self, name) is not None}
        # Templates make texts of numbers.
        given |= {name: int(given[name]) for name in ("gpus", "nodes", "cpus") if isinstance(given.get(name), str)}
        body = job_request(self.command, self.spec, given)
        ti = context["ti"]
        body.setdefault("name", f"{ti.dag_id}.{ti.task_id}"[:500])
        ours = {"airflow_dag": ti.dag_id, "airflow_run": ti.run_id, "airflow_task": ti.task_id}
        body["labels"] = ours | dict(body.get("labels") or {})
        self._secrets = set(secret_values(body))
        for value in self._secrets:
            mask_secret(value)
        return body
