"""A service that answers from a script, in the place of a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
from tao_slurm import AsyncClient, Client

ID = "01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a11"
Reply = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Service:
    """Gives one reply after the other, and keeps the requests. The last reply is repeated."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        # A copy: the client may change what it sends again.
        self.requests.append(httpx.Request(request.method, request.url, headers=request.headers, content=request.content))
        reply = self.replies[0] if len(self.replies) == 1 else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            return reply(request)
        # A response can be read once.
        if isinstance(reply.stream, httpx.ByteStream):
            return httpx.Response(reply.status_code, headers=reply.headers, content=b"".join(reply.stream))
        return reply

    def client(self, **settings: Any) -> Client:
        settings = {"url": "http://service", "token": "tsl_secret", "patience": 0.5, **settings}
        return Client(transport=httpx.MockTransport(self), **settings)

    def async_client(self, **settings: Any) -> AsyncClient:
        settings = {"url": "http://service", "token": "tsl_secret", "patience": 0.5, **settings}
        return AsyncClient(transport=httpx.MockTransport(self), **settings)

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.requests]


def answer(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()}, json=body)


def problem(code: str, status: int, detail: str = "why", **more: Any) -> httpx.Response:
    headers = {"content-type": "application/problem+json"} | more.pop("headers", {})
    document = {"type": f"urn:tao-slurm:problem:{code}", "title": "title", "status": status, "detail": detail, "code": code}
    return httpx.Response(status, headers=headers, content=json.dumps(document | more))


def status(state: str = "Running", phase: str = "running", **more: Any) -> dict[str, Any]:
    times = {"created_on": "2026-11-28T10:00:00Z", "last_modified": "2026-11-28T10:00:00Z"}
    return {
        "id": ID, "name": None, "status": state, "phase": phase, "message": "it runs", "cluster": "dgx", "nodes": [],
        "attempt": 1, "retry_count": 0, "progress": {"metrics": {}}, "source": "poll", "stale": False, "version": 3,
    } | times | more


def job(**more: Any) -> dict[str, Any]:
    """Only what is needed of an answer to a submission."""
    return {"id": ID} | more


def pipeline(state: str = "Running", *jobs: dict[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys(("total", "pending", "running", "done", "error", "canceled", "skipped"), 0)
    return {
        "id": ID, "name": "nightly", "owner": "me", "labels": {}, "status": state, "jobs": list(jobs), "jobs_by_status": counts,
        "created_on": "2026-11-28T10:00:00Z", "finished_on": None,
    }


def pipeline_job(name: str, id: str, state: str = "Done", **more: Any) -> dict[str, Any]:
    times = {"started_on": None, "finished_on": "2026-11-28T10:00:00Z"}
    ended = {"name": name, "id": id, "status": state, "phase": "ended", "message": f"{name} ended", "skipped": False, "needs": []}
    return ended | times | more


def event(name: str, data: Any, id: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"id: {id}\n" if id else "").encode() + f"event: {name}\ndata: {text}\n\n".encode()


class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The pieces of a stream, and then its end or an error."""

    def __init__(self, pieces: tuple[bytes, ...], error: Exception | None = None) -> None:
        self.pieces, self.error = pieces, error

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces
        if self.error is not None:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


def stream(*pieces: bytes, error: Exception | None = None) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Stream(pieces, error))
