"""Streams that go on after a broken connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from tao_slurm._async.transport import AsyncTransport
from tao_slurm._retry import Tries, may_repeat
from tao_slurm._sse import Parser, ServerEvent
from tao_slurm._text import one_line
from tao_slurm.errors import ApiError, TaoSlurmError, Unreachable

LOG = logging.getLogger("tao_slurm")


async def follow(
    transport: AsyncTransport, path: str, query: Mapping[str, Any], *, last_id: str | None = None
) -> AsyncIterator[ServerEvent]:
    """The events up to `end`, each once. A broken stream continues after the last event.

    It fails if the service does not answer for as long as the patience.
    """
    tries = Tries(transport.patience)
    while True:
        tries.begin()
        at_least = None
        try:
            async with transport.stream(path, query, last_id) as response:
                if response.status_code == 204:
                    return
                parser = Parser()
                async for piece in response.aiter_bytes():
                    tries.progress()
                    events = parser.feed(piece)
                    last_id = parser.last_id or last_id
                    for event in events:
                        yield event
                        if event.name == "end":
                            return
            failure: TaoSlurmError = Unreachable(f"GET {path}: the stream ended too early", tries=tries.count)
            repeat = True
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = one_line(str(error), 200) or type(error).__name__
            url = transport.settings.url
            failure = Unreachable(f"GET {path}: {url} does not answer: {reason}", tries=tries.count)
            repeat = True
        except ApiError as problem:
            failure, at_least = problem, problem.retry_after
            repeat = may_repeat(problem, True)
        pause = tries.pause(at_least) if repeat else None
        if pause is None:
            raise failure from None
        LOG.info("%s; again in %.1f s", failure, pause)
        await asyncio.sleep(pause)
