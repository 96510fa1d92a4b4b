"""The SDK's words for the states of a job."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from tao_sdk.models import JobStatus

from tao_slurm import models

STATUS = {
    "Pending": "Pending",
    "Resuming": "Pending",
    "Started": "Running",
    "Running": "Running",
    "Pausing": "Running",
    "Paused": "Paused",
    "Canceling": "Canceling",
    "Done": "Complete",
    "Error": "Error",
    "Canceled": "Canceled",
}
"""The SDK's word for each of the service's."""
UNKNOWN = "Unknown"
"""No such job. It is final for some programs, so nothing else becomes it."""


def word(status: models.Status) -> str:
    # A word that only a newer service knows is not final.
    return STATUS.get(str(status), "Running")


def words_of_service(status: str | None) -> list[str] | None:
    """The service's words for one of the SDK; `None` for all."""
    if status is None:
        return None
    known = sorted(set(STATUS.values()))
    if status not in known and status != UNKNOWN:
        raise ValueError(f"there is no status {status!r}; the words are {', '.join(known)}")
    return [of_service for of_service, ours in STATUS.items() if ours == status]


def job_status(view: models.StatusView) -> JobStatus:
    changed: datetime = view.observed_at or view.last_modified
    return JobStatus(job_id=str(view.id), status=word(view.status), message=view.message, updated_at=changed.isoformat())


def row(view: models.JobSummary) -> dict[str, Any]:
    """The job with the keys of TAO's job store."""
    return {
        "job_id": str(view.id),
        "network_arch": view.network_arch or "",
        "action": view.action or "",
        "workspace_id": "slurm",
        "backend_type": "slurm",
        "backend_job_id": view.slurm_job_id or "",
        "status": word(view.status),
        "message": view.message,
        "parent_job_id": "",
        "image": view.image or "",
        "results_dir": results_dir(view),
        "local_results_dir": "",
        "base_checkpoint": "",
        "last_epoch": view.progress.epoch or 0,
        "created_at": view.created_on.isoformat(),
        "updated_at": view.last_modified.isoformat(),
    }


def results_dir(view: models.JobSummary) -> str:
    """The job's results directory as a URI; empty if its cluster does not exist any more."""
    base = view.backend_details.slurm_metadata.job_dir
    return uri(f"{base}/results/{view.id}") if base else ""


def uri(path: str) -> str:
    return f"lustre://{path}"
