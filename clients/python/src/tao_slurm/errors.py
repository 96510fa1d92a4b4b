"""Exceptions. All are `TaoSlurmError`; those for a problem code are in `tao_slurm.problems`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tao_slurm.models import FailureView, FieldError, PipelineView, Status, StatusView

__all__ = [
    "TaoSlurmError",
    "SettingsError",
    "Unreachable",
    "BadAnswer",
    "ApiError",
    "WaitTimeout",
    "JobFailed",
    "JobCanceled",
    "PipelineFailed",
]


class TaoSlurmError(Exception):
    """The base of all exceptions of this package. Other processes get them without the job or pipeline, which has a connection."""

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in self.__dict__.items() if name not in ("job", "pipeline")}
        texts = tuple(str(value) for value in self.args)
        return restore, (type(self), texts, state)


def restore(kind: type[TaoSlurmError], texts: tuple[str, ...], state: dict[str, Any]) -> TaoSlurmError:
    error = kind.__new__(kind, *texts)
    error.__dict__.update(state)
    return error


class SettingsError(TaoSlurmError):
    """The address, the token or the configuration file cannot be used."""


class Unreachable(TaoSlurmError):
    """The service did not answer for as long as the client's `patience`.

    A submission may have arrived all the same. Submit again with its `idempotency_key`: the job is then stored once.
    """

    def __init__(self, reason: str, *, tries: int, idempotency_key: str | None = None) -> None:
        super().__init__(f"{reason}; tried {tries} times" if tries > 1 else reason)
        self.tries = tries
        """How often the request was sent."""
        self.idempotency_key = idempotency_key
        """The key of a submission, to repeat it with."""


class BadAnswer(TaoSlurmError):
    """The answer is not one of the service's API. Check the address, and proxies on the way."""


class ApiError(TaoSlurmError):
    """The service refused a request. Each problem code has a subclass in `tao_slurm.problems`.

    A code that this version of the package does not know, and an answer of a proxy, is an `ApiError` itself.
    """

    code: str = "unknown"
    """The stable code of the problem; `unknown` for an answer that is no problem document."""

    def __init__(
        self,
        *,
        status: int,
        title: str,
        detail: str = "",
        code: str | None = None,
        errors: list[FieldError] | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        """The HTTP status."""
        self.title = title
        """What all problems with this code have in common."""
        self.detail = detail
        """What is wrong, and what to do."""
        if code is not None:
            self.code = code
        self.errors: list[FieldError] = errors or []
        """Each fault of the request, with a JSON `pointer` or a `parameter`."""
        self.request_id = request_id
        """The id of the request in the service's log."""
        self.retry_after = retry_after
        """The pause in seconds that the service asked for."""
        self.tries = 1
        """How often the request was sent."""
        super().__init__(status, title, detail)

    def __str__(self) -> str:
        text = f"{self.detail or self.title} ({self.code}, HTTP {self.status})"
        if len(self.errors) > 1:
            for fault in self.errors:
                text += f"\n- {fault.pointer or fault.parameter or 'request'}: {fault.detail}"
        return f"{text}\nrequest_id: {self.request_id}" if self.request_id and self.status >= 500 else text


class WaitTimeout(TaoSlurmError, TimeoutError):
    """The job or pipeline has not ended within the `timeout` of a wait. It goes on."""


class JobFailed(TaoSlurmError):
    """A job ended in `Error`. `failure` says why, if its program ran."""

    job: Any = None
    """The job; `None` in another process than the one that waited."""

    def __init__(self, job: Any, status: StatusView) -> None:
        self.job = job
        self.status: StatusView = status
        """Its last status."""
        self.failure: FailureView | None = status.failure
        """The rule, the category and the node of the failure, with advice."""
        super().__init__(job, status)

    def __str__(self) -> str:
        text = f"job {self.status.id} ended in {self.status.status}: {self.status.message}"
        return f"{text} {self.failure.advice}" if self.failure else text


class JobCanceled(JobFailed):
    """A job ended in `Canceled`."""


class PipelineFailed(TaoSlurmError):
    """A pipeline ended in `Error` or `Canceled`."""

    pipeline: Any = None
    """The pipeline; `None` in another process than the one that waited."""

    def __init__(self, pipeline: Any, status: PipelineView) -> None:
        self.pipeline = pipeline
        self.status: PipelineView = status
        """Its last state, with the message of each job."""
        super().__init__(pipeline, status)

    @property
    def failed(self) -> dict[str, Status]:
        """The jobs that are not `Done` and were not skipped."""
        return {job.name: job.status for job in self.status.jobs if job.status != "Done" and not job.skipped}

    def __str__(self) -> str:
        jobs = "".join(
            f"\n- {job.name}: {job.status}: {job.message}" for job in self.status.jobs if job.name in self.failed
        )
        return f"pipeline {self.status.id} ended in {self.status.status}{jobs}"
