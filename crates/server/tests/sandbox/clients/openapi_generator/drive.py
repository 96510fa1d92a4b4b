"""Sends a job, waits for its end and prints its log, by the client of openapi-generator. Arguments: the address, and a token."""

import sys

from tao_slurm_client import ApiClient, Configuration, JobRequest, JobsApi, ResourcesRequest, Status

address, token = sys.argv[1:]
with ApiClient(Configuration(host=address, access_token=token)) as client:
    jobs = JobsApi(client)
    request = JobRequest(
        name="from openapi-generator", command="echo hello from openapi-generator",
        resources=ResourcesRequest(num_gpus=0, time_hours=0.1),
    )
    job = jobs.create_job(request, idempotency_key="openapi-generator")
    assert job.name == "from openapi-generator" and job.resources.gpus_per_node == 0, job

    status = job.status
    while status not in (Status.DONE, Status.ERROR, Status.CANCELED):
        status = jobs.get_job_status(job.id, wait=20).status
    print(status.value, job.id)
    print(jobs.get_job_logs(job.id, stream="out"))
