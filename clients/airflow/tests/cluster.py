"""A service with jobs in memory, and the parts of Airflow's context that the operator uses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
from airflow.sdk import Context
from fake import Service, answer, event, job, problem, status, stream

ENDED = ("Done", "Error", "Canceled")


class Cluster(Service):
    """Stores jobs by their id, and answers by their state. `faults` are answered first, one each."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.state: dict[str, str] = {}
        self.calls: list[str] = []
        self.faults: list[httpx.Response | Exception] = []
        self.new = "Running"
        self.secrets: set[str] = set()
        """The variables whose values a retry needs."""

    def reply(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(f"{request.method} {request.url.path}")
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return fault
        if request.url.path == "/me":
            return answer({"owner": "etl", "scopes": ["read", "write"], "authentication": "token", "expires_at": None})
        if request.url.path == "/jobs":
            return self.submit(json.loads(request.content))
        _, _, id, *action = request.url.path.split("/")
        if id not in self.jobs:
            return problem("job_not_found", 404)
        return self.of_job(id, action[0], json.loads(request.content or b"{}"))

    def submit(self, body: dict[str, Any]) -> httpx.Response:
        id = body["id"]
        if id in self.jobs:
            return answer(job(id=id)) if self.jobs[id] == body else problem("id_conflict", 422)
        self.jobs[id], self.state[id] = body, self.new
        return answer(job(id=id), 201)

    def of_job(self, id: str, action: str, body: dict[str, Any]) -> httpx.Response:
        state = self.state[id]
        ended = state in ENDED
        now = status(state, "ended" if ended else "running", id=id, message=f"it is {state}\n\x1b[2J")
        match action:
            case "status":
                return answer(now)
            case "cancel":
                self.state[id] = state if ended else "Canceled"
                return answer(now, 202)
            case "retry":
                if set(body.get("secret_env_vars", {})) != self.secrets:
                    return problem("invalid_request", 422)
                self.state[id] = "Running"
                return answer(now, 202)
            case "results":
                return answer([{"task": 0, "name": "loss", "value": 0.5, "problem": None}])
            case "logs":
                return httpx.Response(200, text="line 1\nline \x1b[31m2 of hf_hidden\n")
            case "diagnosis":
                first = {"log": "main.err", "offset": 0, "line": "CUDA out of memory"}
                return answer(
                    {
                        "job_id": id, "attempt": 1, "task": 0, "rule": "oom", "category": "program", "why": "No memory.",
                        "advice": "Use less.", "node": "node01", "rank": None, "first": first, "followed": [], "has_gaps": False,
                    }
                )  # fmt: skip
            case "events":
                data = {"kind": "status", "status": state, "message": "m"}
                shown = {
                    "id": "1", "job_id": id, "cluster": "dgx", "seq": 1, "at": "2026-11-28T10:00:00Z", "kind": "status", "attempt": 1,
                    "file": None, "earlier_run": False, "data": data,
                }  # fmt: skip
                return stream(event("status", shown, "1"), event("end", {"kind": "end", "job_id": id, "status": state}))
        raise AssertionError(action)

    def count(self, call: str) -> int:
        return sum(each.startswith(call) for each in self.calls)


class Store:
    """The task store, which tries of a task share."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def set(self, key: str, value: Any, *, retention: Any) -> None:
        self.values[key] = value


@dataclass
class Ti:
    try_number: int = 1
    max_tries: int = 2
    dag_id: str = "nightly"
    run_id: str = "manual"
    task_id: str = "train"
    map_index: int = -1
    xcom: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcom[key] = value


def context(store: Store, **ti: Any) -> Context:
    return cast(Context, {"ti": Ti(**ti), "task_state_store": store})
