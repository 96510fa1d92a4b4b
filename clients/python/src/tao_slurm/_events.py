"""The data of streamed events, and the lines of a log that was read at once."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from tao_slurm._lines import LogLine
from tao_slurm._sse import ServerEvent
from tao_slurm.errors import BadAnswer
from tao_slurm.models import EventView

KINDS = frozenset({"transition", "status", "events_truncated", "orphan", "deleted"})


def read_event(event: ServerEvent) -> EventView | None:
    """The event of a job; `None` for the end of the stream, and for what only a newer service sends."""
    try:
        return EventView.model_validate_json(event.data)
    except ValidationError:
        if event.name in KINDS:
            raise BadAnswer(f"the data of an event {event.name!r} are not those of the API") from None
        return None


def log_lines(text: str) -> Iterator[LogLine]:
    for line in text.removesuffix("\n").split("\n") if text else ():
        yield LogLine(line.removesuffix("\r"))
