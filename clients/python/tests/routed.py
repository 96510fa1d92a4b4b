"""A service that answers by the path of a request, in the place of a network."""

from __future__ import annotations

import json
from typing import Any

import httpx
from example import example
from fake import Service, answer, job, problem, status
from tao_slurm.tao import TaoSlurmSDK

BASE = "/lustre/tao"
Routes = dict[tuple[str, str], Any]


def cluster(**more: Any) -> dict[str, Any]:
    return example("ClusterView", name="dgx", is_default=True, base_results_dir=BASE, container_mounts=["/lustre"]) | more


def details(state: str = "Running", phase: str = "running", **more: Any) -> dict[str, Any]:
    metadata = {"slurm_job_id": "4711", "job_dir": BASE, "retry_count": 0, "failed_slurm_job_ids": []}
    place = example("BackendDetailsView", slurm_metadata=metadata)
    return example("JobView") | status(state, phase) | {"backend_details": place, "slurm_job_id": "4711"} | more


class Routed(Service):
    """Answers by method and the end of the path; what is not listed is a job that was stored."""

    def __init__(self, routes: Routes | None = None) -> None:
        super().__init__(self.reply)
        self.routes: Routes = {("GET", "/clusters"): {"clusters": [cluster()], "unusable": []}, ("POST", "/jobs"): job()} | (routes or {})

    def reply(self, request: httpx.Request) -> httpx.Response:
        for (method, end), reply in self.routes.items():
            if request.method == method and request.url.path.endswith(end):
                if callable(reply):
                    reply = reply(request)
                if isinstance(reply, Exception):
                    raise reply
                return reply if isinstance(reply, httpx.Response) else answer(reply)
        return problem("job_not_found", 404)

    def sdk(self, **settings: Any) -> TaoSlurmSDK:
        return TaoSlurmSDK(self.client(), **settings)

    def submitted(self) -> dict[str, Any]:
        sent = [request for request in self.requests if request.method == "POST" and request.url.path == "/jobs"]
        body: dict[str, Any] = json.loads(sent[-1].content)
        return body
