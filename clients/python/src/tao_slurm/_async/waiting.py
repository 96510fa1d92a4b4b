"""Waits for a state of a job or a pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from pydantic import BaseModel

from tao_slurm._async.transport import AsyncTransport
from tao_slurm.errors import Unreachable, WaitTimeout

StateT = TypeVar("StateT", bound=BaseModel)
# Below the 60 s that the service allows, and below the time-outs of most proxies.
HELD = 30
# A proxy may answer for the service, or take away its ETag.
PAUSE = 1.0


async def wait_until(
    transport: AsyncTransport,
    path: str,
    model: type[StateT],
    is_reached: Callable[[StateT], bool],
    *,
    timeout: float | None,
    show: Callable[[StateT], object],
) -> StateT:
    """The first state that is reached. The service answers when something changes, so this does not poll."""
    ends = None if timeout is None else monotonic() + timeout
    etag: str | None = None
    while True:
        left = None if ends is None else max(0.0, ends - monotonic())
        held = 0 if etag is None else HELD if left is None else min(HELD, int(left))
        asked = monotonic()
        try:
            answer = await transport.request(
                "GET", path, query={"wait": held}, headers={"If-None-Match": etag}, repeatable=True, wait=held, within=left
            )
        except Unreachable as error:
            # The patience may be longer than the time that the caller gave.
            if left is not None and left < transport.patience:
                raise WaitTimeout(f"{path} has not ended within {timeout} s; {error}") from None
            raise
        if answer.status != 304:
            state = answer.read(model)
            show(state)
            if is_reached(state):
                return state
            etag = answer.headers.get("etag")
        if ends is not None and monotonic() >= ends:
            raise WaitTimeout(f"{path} has not ended within {timeout} s")
        is_at_once = monotonic() - asked < PAUSE and (answer.status == 304 or etag is None)
        if is_at_once:
            await asyncio.sleep(PAUSE if ends is None else min(PAUSE, max(0.0, ends - monotonic())))
