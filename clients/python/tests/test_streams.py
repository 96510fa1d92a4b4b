"""Streams that break, and the events that arrive once."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import httpx
import pytest
from fake import ID, Service, event, problem, stream
from tao_slurm import BadAnswer, Unreachable
from tao_slurm._sse import LONGEST, Parser, ServerEvent
from tao_slurm.problems import JobNotFound

CUT = httpx.ReadError("connection reset")


def transition(seq: int, **more: Any) -> dict[str, Any]:
    fields = {"id": f"{seq:016x}", "job_id": ID, "cluster": "dgx", "seq": seq, "at": "2026-11-28T10:00:00Z", "kind": "transition"}
    return fields | {"attempt": 1, "file": None, "earlier_run": False, "data": {"status": "Running"}} | more


def happened(*numbers: int) -> tuple[bytes, ...]:
    return tuple(event("transition", transition(seq), f"{seq:016x}") for seq in numbers)


END = event("end", {"kind": "end", "job_id": ID, "status": "Done"}, "end")


def last_ids(service: Service) -> list[str | None]:
    return [request.headers.get("last-event-id") for request in service.requests]


def test_a_broken_stream_continues_after_the_last_event_and_ends_with_the_job() -> None:
    service = Service(
        stream(*happened(1, 2), error=CUT),
        httpx.ConnectError("refused"),
        problem("watchers_busy", 503),
        stream(*happened(3)),
        stream(*happened(4), END),
    )
    events = list(service.client().job(ID).events(follow=True))
    assert [event.seq for event in events] == [1, 2, 3, 4]
    position = [f"{seq:016x}" for seq in (2, 3)]
    assert last_ids(service) == [None, position[0], position[0], position[0], position[1]]
    assert {request.headers["accept"] for request in service.requests} == {"text/event-stream"}


def test_an_asynchronous_stream_continues_too() -> None:
    service = Service(stream(*happened(1), error=CUT), stream(*happened(2), END))

    async def read() -> list[int]:
        async with service.async_client() as client:
            return [event.seq async for event in client.job(ID).events(follow=True)]

    assert asyncio.run(read()) == [1, 2]


def test_an_event_that_breaks_off_comes_again() -> None:
    whole = happened(2)[0]
    service = Service(stream(*happened(1), whole[:-20], error=CUT), stream(whole, END))
    assert [event.seq for event in service.client().job(ID).events(follow=True)] == [1, 2]
    assert last_ids(service) == [None, f"{1:016x}"]


def test_events_that_are_sent_twice_are_given_once() -> None:
    service = Service(stream(*happened(1, 2), error=CUT), stream(*happened(1, 2, 3), END))
    assert [event.seq for event in service.client().job(ID).events(follow=True)] == [1, 2, 3]


def test_a_reset_begins_anew() -> None:
    reset = event("reset", {"kind": "reset", "detail": "an older backup"})
    service = Service(stream(*happened(5, 6), error=CUT), stream(reset, *happened(1, 2), END))
    assert [event.seq for event in service.client().job(ID).events(follow=True)] == [5, 6, 1, 2]


def test_a_stream_that_had_ended_is_a_204() -> None:
    service = Service(stream(*happened(1), error=CUT), httpx.Response(204))
    assert [event.seq for event in service.client().job(ID).events(follow=True)] == [1]


def test_a_stream_gives_up_when_nothing_arrives_for_as_long_as_the_patience(clock: list[float]) -> None:
    for service in (Service(httpx.ConnectError("refused")), Service(lambda _: stream())):
        began = clock[0]
        with pytest.raises(Unreachable):
            list(service.client(patience=2).job(ID).events(follow=True))
        assert len(service.requests) > 1
        # Pauses at most double, so more than a third of the patience has passed when the next one is too long.
        assert 0.6 < clock[0] - began < 2


def test_each_progress_of_a_stream_begins_its_patience_anew(clock: list[float]) -> None:
    broken = [stream(*happened(seq), error=CUT) for seq in range(1, 30)]
    service = Service(*broken, stream(*happened(30), END))
    assert len(list(service.client(patience=0.01).job(ID).events(follow=True))) == 30
    assert clock[0] > 0.01


def test_a_refusal_ends_a_stream() -> None:
    with pytest.raises(JobNotFound):
        list(Service(problem("job_not_found", 404)).client().job(ID).events(follow=True))


def test_a_page_in_the_place_of_a_stream_is_a_bad_answer() -> None:
    page = httpx.Response(200, headers={"content-type": "text/html"}, content=b"<html>log in</html>")
    with pytest.raises(BadAnswer, match="no stream of events, but text/html"):
        list(Service(page).client().job(ID).events(follow=True))


def test_events_of_a_newer_service_are_ignored_and_broken_ones_are_not() -> None:
    service = Service(stream(event("weather", {"sun": True}), *happened(1), END))
    assert [event.seq for event in service.client().job(ID).events(follow=True)] == [1]
    with pytest.raises(BadAnswer):
        list(Service(stream(event("transition", "not JSON"), END)).client().job(ID).events(follow=True))


def piece(offset: int, text: str | bytes, file: str = "main.out", attempt: int = 1) -> bytes:
    content = text if isinstance(text, bytes) else text.encode()
    position = {"kind": "log", "attempt": attempt, "file": file, "offset": offset, "next_offset": offset + len(content)}
    body = {"bytes": base64.b64encode(text).decode()} if isinstance(text, bytes) else {"text": text}
    return event("log", position | body, f"{attempt};{file}={offset + len(content)}@7")


ENDED = event("end", {"kind": "end", "attempt": 1, "status": "Done", "detail": ""}, "1;end")


def followed(*replies: httpx.Response) -> list[tuple[str, str, int | None]]:
    lines = Service(*replies).client().job(ID).logs(follow=True)
    return [(str(line), line.file, line.attempt) for line in lines]


def test_lines_are_joined_from_pieces_of_two_streams() -> None:
    pieces = (piece(0, "on"), piece(0, "warn", "main.err"), piece(2, "e\ntwo\r\nthr"), piece(4, "ing\n", "main.err"), piece(12, "ee"))
    assert followed(stream(*pieces, ENDED)) == [
        ("one", "main.out", 1), ("two", "main.out", 1), ("warning", "main.err", 1), ("three", "main.out", 1),
    ]


def test_bytes_that_come_again_are_taken_once() -> None:
    again = stream(piece(0, "one\ntw"), piece(6, "o\nthree\n"), ENDED)
    assert [line for line, *_ in followed(stream(piece(0, "one\ntwo\n"), error=CUT), again)] == ["one", "two", "three"]


def test_a_character_that_two_pieces_share_is_whole() -> None:
    first, second = "ä".encode()[:1], "ä".encode()[1:]
    assert [line for line, *_ in followed(stream(piece(0, first), piece(1, second + b"\n\xff\n"), ENDED))] == ["ä", "\ufffd"]


def test_a_new_attempt_and_a_new_file_begin_new_lines() -> None:
    attempt = event("attempt", {"kind": "attempt", "attempt": 2, "previous": 1, "slurm_job_id": None})
    reset = event("reset", {"kind": "reset", "attempt": 2, "file": "main.out", "reason": "truncated"})
    pieces = (piece(0, "half"), attempt, piece(0, "second\nli", attempt=2), reset, piece(0, "third\n", attempt=2))
    assert [line for line, *_ in followed(stream(*pieces, ENDED))] == ["half", "second", "li", "third"]


def test_a_giant_line_is_given_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tao_slurm._lines.LONGEST", 10)
    text = "x" * 25 + "\n" + "y" * 12
    lines = [line for line, *_ in followed(stream(piece(0, text[:8]), piece(8, text[8:]), ENDED))]
    assert lines == ["x" * 10, "x" * 10, "x" * 5, "y" * 10, "y" * 2]


def test_a_giant_event_is_refused() -> None:
    parser = Parser()
    with pytest.raises(BadAnswer):
        for _ in range(LONGEST // 65536 + 1):
            parser.feed(b"x" * 65536)


def parsed(*pieces: bytes) -> list[ServerEvent]:
    parser = Parser()
    return [event for piece in pieces for event in parser.feed(piece)]


def test_a_stream_may_be_cut_anywhere() -> None:
    text = "\ufeffid: 7\r\n: comment\r\nevent: log\r\ndata: ä\r\ndata:b\r\n\r\ndata\r\n\r\nid: 8\n\nretry: 5\rdata: c\r\r".encode()
    whole = [ServerEvent("log", "ä\nb", "7"), ServerEvent("message", "", "7"), ServerEvent("message", "c", "8")]
    assert parsed(text) == whole
    for at in range(len(text)):
        assert parsed(text[:at], text[at:]) == whole, at
    assert parsed(*(text[at : at + 1] for at in range(len(text)))) == whole
