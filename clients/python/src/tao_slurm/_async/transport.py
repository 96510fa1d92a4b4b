"""Requests, and when they are sent again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tao_slurm._answer import LARGEST, Answer
from tao_slurm._body import Body
from tao_slurm._problem import read_problem
from tao_slurm._retry import Tries, may_repeat, query_items, read_retry_after
from tao_slurm._text import one_line
from tao_slurm.errors import ApiError, BadAnswer, TaoSlurmError, Unreachable
from tao_slurm.settings import Settings
from tao_slurm.version import VERSION

LOG = logging.getLogger("tao_slurm")
ACCEPT = "application/json, text/plain;q=0.9, */*;q=0.5"
# The service sends a comment every 15 s to streams without events.
STREAM_TIMEOUT = 50.0
# The request did not leave, so any may be repeated.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class AsyncTransport:
    """Sends requests to one service, each until it is answered or the patience is over."""

    def __init__(
        self,
        settings: Settings,
        *,
        timeout: float = 30.0,
        patience: float = 300.0,
        transport: httpx.AsyncBaseTransport | None = None,
        verify: Any = True,
    ) -> None:
        if timeout <= 0 or patience < 0:
            raise ValueError("timeout must be above 0, and patience not below 0")
        self.settings = settings
        self.timeout = timeout
        self.patience = patience
        headers = {"User-Agent": f"tao-slurm-python/{VERSION}"}
        if settings.authorization is not None:
            headers["Authorization"] = settings.authorization
        self._http = httpx.AsyncClient(
            base_url=settings.url,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(timeout, 10.0)),
            follow_redirects=False,
            transport=transport,
            verify=verify,
        )

    async def aclose(self) -> None:
        await self._http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, Any] | None = None,
        body: Body | None = None,
        repeatable: bool,
        wait: float = 0.0,
        within: float | None = None,
    ) -> Answer:
        """The answer of a request, which the service may hold back for `wait` seconds; `within` shortens the patience."""
        request = self._build(method, path, query or {}, headers or {}, body, wait)
        tries = Tries(self.patience + wait if within is None else min(self.patience + wait, within))
        while True:
            tries.begin()
            at_least = None
            try:
                return await self._send(request, tries)
            except httpx.TransportError as error:
                failure: TaoSlurmError = self._unreachable(request, error, tries)
                repeat = repeatable or isinstance(error, NOT_SENT)
            except ApiError as problem:
                problem.tries = tries.count
                failure, at_least = problem, problem.retry_after
                repeat = may_repeat(problem, repeatable)
            pause = tries.pause(at_least) if repeat else None
            if pause is None:
                raise failure from None
            LOG.info("%s %s: %s; again in %.1f s", method, path, failure, pause)
            await asyncio.sleep(pause)

    async def _send(self, request: httpx.Request, tries: Tries) -> Answer:
        response = await self._http.send(request, stream=True)
        try:
            content = bytearray()
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > LARGEST:
                    raise BadAnswer(f"{self._name(request)}: the answer has more than {LARGEST} bytes")
                if tries.left < -self.timeout:
                    raise httpx.ReadTimeout("the answer does not end")
        except httpx.DecodingError:
            raise BadAnswer(f"{self._name(request)}: the answer is not encoded as its header says") from None
        finally:
            await response.aclose()
        self._check(request, response, bytes(content))
        return Answer(response.status_code, response.headers, bytes(content), self._name(request), tries.count)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, Any], last_id: str | None
    ) -> AsyncIterator[httpx.Response]:
        """An open stream of events; its content is not read yet. It is not opened again."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store", "Last-Event-ID": last_id}
        request = self._build("GET", path, query, headers, None, 0.0)
        request.extensions["timeout"]["read"] = max(self.timeout, STREAM_TIMEOUT)
        response = await self._http.send(request, stream=True)
        try:
            if response.status_code != 204:
                kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                is_stream = response.status_code == 200 and kind == "text/event-stream"
                self._check(request, response, b"" if is_stream else await self._excerpt(response))
                if not is_stream:
                    raise BadAnswer(f"{self._name(request)}: no stream of events, but {one_line(kind, 100) or 'nothing'}")
            yield response
        finally:
            await response.aclose()

    async def _excerpt(self, response: httpx.Response) -> bytes:
        content = b""
        async for piece in response.aiter_bytes():
            content += piece
            if len(content) > 64 * 1024:
                break
        return content

    def _build(
        self, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, Any], body: Body | None, wait: float
    ) -> httpx.Request:
        sent = {"Accept": ACCEPT} | {name: str(value) for name, value in headers.items() if value is not None}
        content = None if body is None else body.content
        if content is not None:
            sent["Content-Type"] = "application/json"
        request = self._http.build_request(method, path, params=query_items(query), headers=sent, content=content)
        request.extensions["timeout"]["read"] = self.timeout + wait
        return request

    def _check(self, request: httpx.Request, response: httpx.Response, content: bytes) -> None:
        status = response.status_code
        if status >= 400:
            raise read_problem(status, content, read_retry_after(response.headers.get("retry-after")))
        if not (200 <= status < 300 or status == 304):
            raise BadAnswer(f"{self._name(request)}: HTTP {status}; is {self.settings.url} the address of the service?")

    def _unreachable(self, request: httpx.Request, error: httpx.TransportError, tries: Tries) -> Unreachable:
        reason = one_line(str(error), 200) or type(error).__name__
        text = f"{self._name(request)}: {self.settings.url} does not answer: {reason}"
        return Unreachable(text, tries=tries.count, idempotency_key=request.headers.get("idempotency-key"))

    @staticmethod
    def _name(request: httpx.Request) -> str:
        return f"{request.method} {one_line(request.url.path, 200)}"
