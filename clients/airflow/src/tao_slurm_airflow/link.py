"""The link from a task to its job in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from uuid import UUID

    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

__all__ = ["TaoSlurmJobLink", "job_page"]


class TaoSlurmJobLink(BaseOperatorLink):
    """A button on the page of a task. The worker stores the address; the web server only reads it."""

    name = "Job in the console"

    @property
    def xcom_key(self) -> str:
        return "tao_slurm_link"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return str(getattr(operator, "job_page", ""))


def job_page(url: str, job_id: UUID | str) -> str:
    """The page of a job. The console is at the address of the API."""
    return f"{url}/ui/jobs/{job_id}"
