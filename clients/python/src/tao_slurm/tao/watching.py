"""What TAO's `JobMonitor` asks while it watches a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tao_slurm.tao.sdk import TaoSlurmSDK


class JobHandler:
    """The handler for `JobMonitor.watch(job, hooks, handler)`: `TaoSlurmSDK.handler`.

    A service that does not answer raises `tao_slurm.Unreachable`, after which the monitor asks again.
    """

    def __init__(self, sdk: TaoSlurmSDK) -> None:
        self._sdk = sdk

    def get_tao_job_status(self, job_id: str) -> str | None:
        """The job's status; `None` if it is complete."""
        status = self._sdk.get_job_status(job_id).status
        return None if status == "Complete" else status

    def normalize_status(self, raw_status: str | None) -> str:
        """The status that `get_tao_job_status` means."""
        return "Complete" if raw_status is None else raw_status

    def get_job_message(self, job_id: str) -> str:
        """What happens to the job now and why."""
        return self._sdk.get_job_status(job_id).message

    def get_job_logs(self, job_id: str, tail_lines: int | None = None) -> str | None:
        """The end of the job's logs."""
        return self._sdk.get_job_logs(job_id, tail=tail_lines)

    def cancel_job(self, job_id: str) -> bool:
        """Cancels the job."""
        return self._sdk.cancel_job(job_id)

    def delete_job(self, job_id: str) -> bool:
        """Cancels the job: for TAO's handlers the two are one."""
        return self._sdk.cancel_job(job_id)
