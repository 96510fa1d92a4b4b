"""Lines of a followed log, from its pieces."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from tao_slurm.errors import BadAnswer
from tao_slurm.models import LogPiece, LogReset

LONGEST = 1024 * 1024
"""A longer line is given in parts."""


EventT = TypeVar("EventT", bound=BaseModel)


class LogLine(str):
    """A line of a log, without its end."""

    file: str
    """The log, such as `main.out`; empty if several logs were read at once."""
    attempt: int | None
    """The attempt that wrote it."""

    def __new__(cls, text: str, file: str = "", attempt: int | None = None) -> LogLine:
        line = super().__new__(cls, text)
        line.file, line.attempt = file, attempt
        return line

    @property
    def is_error(self) -> bool:
        """Whether the line is of standard error."""
        return self.file.endswith(".err")


class Lines:
    """Joins the pieces of several logs to lines, and takes each byte once."""

    def __init__(self) -> None:
        self._begun: dict[tuple[int, str], bytearray] = {}
        self._next: dict[tuple[int, str], int] = {}

    def take(self, name: str, data: str) -> Iterator[LogLine]:
        """The lines that an event completes. Events without bytes complete none, and unknown ones are ignored."""
        if name == "log":
            yield from self.feed(read(LogPiece, name, data))
        elif name == "reset":
            reset = read(LogReset, name, data)
            yield from self.reset(reset.attempt, reset.file)
        elif name == "attempt":
            yield from self.end()

    def feed(self, piece: LogPiece) -> Iterator[LogLine]:
        log = (piece.attempt, piece.file)
        content = self._new_bytes(log, piece)
        begun = self._begun.setdefault(log, bytearray())
        *whole, rest = content.split(b"\n")
        for line in whole:
            begun += line
            yield from self._parts(log, begun)
            yield self._line(log, bytes(begun).removesuffix(b"\r"))
            begun.clear()
        begun += rest
        yield from self._parts(log, begun)

    def reset(self, attempt: int, file: str) -> Iterator[LogLine]:
        """The log begins anew at its first byte."""
        self._next.pop((attempt, file), None)
        yield from self._end((attempt, file))

    def end(self) -> Iterator[LogLine]:
        """What was written without an end of line."""
        for log in list(self._begun):
            yield from self._end(log)

    def _end(self, log: tuple[int, str]) -> Iterator[LogLine]:
        if begun := self._begun.pop(log, None):
            yield self._line(log, bytes(begun))

    def _new_bytes(self, log: tuple[int, str], piece: LogPiece) -> bytes:
        """The bytes that no earlier piece had."""
        content = (piece.text or "").encode("utf-8", "replace")
        if piece.bytes is not None:
            try:
                content = base64.b64decode(piece.bytes)
            except (binascii.Error, ValueError):
                content = b"\xef\xbf\xbd"
        known = self._next.get(log, piece.offset)
        self._next[log] = max(known, piece.next_offset)
        return content[max(0, known - piece.offset) :]

    def _parts(self, log: tuple[int, str], begun: bytearray) -> Iterator[LogLine]:
        """The parts of a line that is too long, but for the last one."""
        while len(begun) > LONGEST:
            yield self._line(log, bytes(begun[:LONGEST]))
            del begun[:LONGEST]

    def _line(self, log: tuple[int, str], line: bytes) -> LogLine:
        return LogLine(line.decode("utf-8", "replace"), log[1], log[0])


def read(model: type[EventT], name: str, data: str) -> EventT:
    try:
        return model.model_validate_json(data)
    except ValidationError:
        raise BadAnswer(f"the data of an event {name!r} are not those of the API") from None
