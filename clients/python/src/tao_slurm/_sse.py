"""Server-sent events, from bytes."""

from __future__ import annotations

from dataclasses import dataclass

from tao_slurm.errors import BadAnswer

LONGEST = 32 * 1024 * 1024
"""The most bytes of one event. The service sends at most a few MiB."""


@dataclass(frozen=True)
class ServerEvent:
    """An event of a stream. `id` is the position after it, or `None` if the stream has not named one."""

    name: str
    data: str
    id: str | None


class Parser:
    """Reads the format of the HTML standard from pieces of any size."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        """The position after the last complete event."""
        self._next_id: str | None = None
        self._line = bytearray()
        self._after_return = False
        self._is_first = True
        self._data: list[str] = []
        self._name = ""
        self._size = 0

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """The events that this piece completes."""
        events: list[ServerEvent] = []
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        if piece:
            self._after_return = piece.endswith(b"\r")
        *whole, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            self._line += line
            event = self._take(bytes(self._line))
            self._line.clear()
            if event is not None:
                events.append(event)
        self._line += rest
        if self._size + len(self._line) > LONGEST:
            raise BadAnswer(f"an event of the stream has more than {LONGEST} bytes")
        return events

    def _take(self, line: bytes) -> ServerEvent | None:
        if self._is_first:
            self._is_first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return self._dispatch()
        self._size += len(line)
        name, _, text = line.decode("utf-8", "replace").partition(":")
        value = text.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._next_id = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        # An event that breaks off must come again.
        self.last_id = self._next_id
        event = ServerEvent(self._name or "message", "\n".join(self._data), self.last_id) if self._data else None
        self._data, self._name, self._size = [], "", 0
        return event
