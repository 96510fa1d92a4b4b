"""Sends a job, waits for its end and prints its log, by the generated client. Arguments: the address, and a token."""

import sys

from tao_slurm_client import AuthenticatedClient
from tao_slurm_client.api.jobs import create_job, get_job_logs, get_job_status
from tao_slurm_client.models import GetJobLogsStream, JobRequest, JobView, ResourcesRequest, Status, StatusView

address, token = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=token, raise_on_unexpected_status=True)
request = JobRequest(
    name="from Python", command="echo hello from Python", resources=ResourcesRequest(num_gpus=0, time_hours=0.1)
)
job = create_job.sync(client=client, body=request, idempotency_key="python")
assert isinstance(job, JobView), job
assert job.name == "from Python" and job.resources.gpus_per_node == 0, job

status = job.status
while status not in (Status.DONE, Status.ERROR, Status.CANCELED):
    view = get_job_status.sync(job.id, client=client, wait=20)
    assert isinstance(view, StatusView), view
    status = view.status
print(status, job.id)
print(get_job_logs.sync(job.id, client=client, stream=GetJobLogsStream.OUT))
