"""When a request is sent again. No part of this waits or sends."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import Any
from urllib.parse import quote

from tao_slurm.errors import ApiError

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
# The service refused before it did anything, so any request may be repeated.
NOTHING_DONE = frozenset(
    {"too_many_requests", "connections_busy", "buffers_busy", "database_unavailable", "keys_unavailable", "request_timeout"}
)
TRANSIENT = frozenset({408, 429, 502, 503, 504})
# A 502 of the service itself, not of a proxy: the cluster has answered.
FINAL = frozenset({"log_unreadable"})


class Tries:
    """The tries of one request, which end when the patience is over. Progress begins them anew."""

    def __init__(self, patience: float, clock: Callable[[], float] = monotonic) -> None:
        self.count = 0
        self._patience = patience
        self._clock = clock
        self._since = clock()
        self._pauses = 0

    def begin(self) -> None:
        self.count += 1

    def progress(self) -> None:
        self._since = self._clock()
        self._pauses = 0

    @property
    def left(self) -> float:
        return self._patience - (self._clock() - self._since)

    def pause(self, at_least: float | None = None) -> float | None:
        """How long to wait before the next try; `None` if that is more than the patience."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._pauses, 20))
        pause = max(random.uniform(longest / 2, longest), at_least or 0.0)
        self._pauses += 1
        return pause if pause < self.left else None


def may_repeat(problem: ApiError, repeatable: bool) -> bool:
    """Whether a refused request is sent again."""
    if problem.status not in TRANSIENT or problem.code in FINAL:
        return False
    return repeatable or problem.code in NOTHING_DONE


def read_retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date; `None` from anything else."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or timezone.utc) - datetime.now(timezone.utc)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def segment(value: object) -> str:
    """An id or a name as a part of a path, and never another path."""
    text = str(value)
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} is not an id or a name")
    return quote(text, safe="")


def query_items(query: Mapping[str, Any]) -> list[tuple[str, str | int | float | bool | None]]:
    """Parameters as the API writes them. Those that are `None` are left out, and lists are repeated."""
    items: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in query.items():
        several = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
        items += [(name, query_text(each)) for each in several if each is not None]
    return items


def query_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)
