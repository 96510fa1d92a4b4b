"""When a request is sent again."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import httpx
import pytest
from fake import ID, Service, answer, job, pipeline, problem, status
from tao_slurm import ApiError, Unreachable
from tao_slurm._retry import Tries, may_repeat, read_retry_after, segment
from tao_slurm.problems import DatabaseUnavailable, Internal, JobNotFound, LogUnreadable, Timeout, TooManyRequests


def keys(service: Service) -> set[str]:
    return {request.headers["idempotency-key"] for request in service.requests}


def test_a_submission_whose_answer_is_lost_is_repeated_with_the_same_key_and_body() -> None:
    lost = httpx.ReadError("connection reset")
    service = Service(lost, httpx.ReadTimeout(""), problem("timeout", 503), answer(job(), 201))
    assert str(service.client().submit("true").id) == ID
    assert len(service.requests) == 4 and len(keys(service)) == 1
    assert len({request.content for request in service.requests}) == 1


def test_two_submissions_have_two_keys() -> None:
    service = Service(answer(job(), 201))
    client = service.client()
    for _ in range(2):
        client.submit("true")
    assert len(keys(service)) == 2


def test_the_callers_own_key_is_sent() -> None:
    service = Service(answer(job(), 201))
    service.client().submit("true", idempotency_key="mine")
    assert keys(service) == {"mine"}


def test_an_asynchronous_submission_is_repeated_too() -> None:
    service = Service(httpx.ConnectError("refused"), httpx.RemoteProtocolError("closed"), answer(job(), 201))

    async def submit() -> str:
        async with service.async_client() as client:
            return str((await client.submit("true")).id)

    assert asyncio.run(submit()) == ID and len(keys(service)) == 1


@pytest.mark.usefixtures("clock")
def test_the_patience_bounds_how_long_a_request_is_repeated() -> None:
    service = Service(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable) as raised:
        service.client(patience=0.02).submit("true", idempotency_key="mine")
    assert raised.value.tries == len(service.requests) > 1
    assert raised.value.idempotency_key == "mine"
    assert "http://service does not answer: refused" in str(raised.value)


def test_without_patience_a_request_is_sent_once() -> None:
    service = Service(problem("database_unavailable", 503))
    with pytest.raises(DatabaseUnavailable):
        service.client(patience=0).job(ID).status()
    assert len(service.requests) == 1


@pytest.mark.usefixtures("clock")
def test_the_last_problem_is_raised_when_the_patience_is_over() -> None:
    service = Service(problem("database_unavailable", 503, "the database restarts"))
    with pytest.raises(DatabaseUnavailable, match="the database restarts") as raised:
        service.client(patience=0.02).job(ID).status()
    assert raised.value.tries > 1


@pytest.mark.parametrize(
    ("code", "http_status", "kind"),
    [("internal", 500, Internal), ("log_unreadable", 502, LogUnreadable), ("job_not_found", 404, JobNotFound), ("new_one", 418, ApiError)],
)
def test_a_final_answer_is_not_asked_for_again(code: str, http_status: int, kind: type[ApiError]) -> None:
    service = Service(problem(code, http_status))
    with pytest.raises(kind) as raised:
        service.client().job(ID).status()
    assert len(service.requests) == 1 and (raised.value.code, raised.value.status) == (code, http_status)


def test_a_call_that_may_not_be_repeated_is_sent_again_only_if_nothing_was_done() -> None:
    body = answer(pipeline("Running"), 202)
    for refusal in (httpx.ConnectError("refused"), problem("too_many_requests", 429), problem("connections_busy", 503)):
        service = Service(refusal, body)
        assert service.client().api.retry_pipeline(ID).status == "Running"
        assert len(service.requests) == 2
    for uncertain in (httpx.ReadError("reset"), problem("timeout", 503), httpx.Response(502)):
        service = Service(uncertain, body)
        with pytest.raises((Unreachable, Timeout, ApiError)):
            service.client().api.retry_pipeline(ID)
        assert len(service.requests) == 1


def test_retry_after_is_honoured_and_not_waited_for_beyond_the_patience() -> None:
    service = Service(problem("too_many_requests", 429, headers={"retry-after": "0.03"}), answer(status()))
    assert service.client().job(ID).status().status == "Running"
    service = Service(problem("too_many_requests", 429, headers={"retry-after": "3600"}), answer(status()))
    with pytest.raises(TooManyRequests) as raised:
        service.client().job(ID).status()
    assert len(service.requests) == 1 and raised.value.retry_after == 3600


def test_pauses_grow_vary_and_are_never_shorter_than_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tao_slurm._retry.FIRST_PAUSE", 0.2)
    monkeypatch.setattr("tao_slurm._retry.LONGEST_PAUSE", 10.0)
    now = [0.0]
    tries = Tries(1000.0, lambda: now[0])
    pauses = [tries.pause() or 0.0 for _ in range(12)]
    limits = [min(10.0, 0.2 * 2**number) for number in range(12)]
    assert all(limit / 2 <= pause <= limit for pause, limit in zip(pauses, limits, strict=True))
    assert len(set(pauses)) == 12
    assert tries.pause(20.0) == 20.0
    tries.progress()
    assert (tries.pause() or 1.0) <= 0.2
    now[0] = 999.95
    assert tries.pause() is None
    tries.progress()
    assert tries.pause() is not None


def test_a_date_as_retry_after_and_nonsense() -> None:
    soon = read_retry_after(format_datetime(datetime.now(timezone.utc) + timedelta(seconds=90)))
    assert soon is not None and 80 < soon <= 90
    assert read_retry_after("-5") == 0.0
    for nonsense in (None, "soon", "nan", "inf", "", "Thu, 99 Foo"):
        assert read_retry_after(nonsense) is None, nonsense


def test_only_transient_problems_are_repeated() -> None:
    def refused(http_status: int, code: str) -> ApiError:
        return ApiError(status=http_status, title="", code=code)

    assert may_repeat(refused(503, "cluster_unavailable"), True)
    assert not may_repeat(refused(503, "cluster_unavailable"), False)
    assert may_repeat(refused(504, "unknown"), True)
    assert not may_repeat(refused(500, "internal"), True)
    assert not may_repeat(refused(409, "wrong_state"), True)


def test_a_job_that_a_lost_try_deleted_is_deleted() -> None:
    Service(httpx.ReadError("reset"), problem("job_not_found", 404)).client().job(ID).delete()
    with pytest.raises(JobNotFound):
        Service(problem("job_not_found", 404)).client().job(ID).delete()


def test_an_id_is_never_another_path() -> None:
    assert segment("a/../b?c#d") == "a%2F..%2Fb%3Fc%23d"
    for value in ("", ".", ".."):
        with pytest.raises(ValueError, match="is not an id or a name"):
            segment(value)
