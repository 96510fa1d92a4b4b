"""Answers that are not what a client expects."""

from __future__ import annotations

import httpx
import pytest
from fake import ID, Service, answer, job, problem, status
from tao_slurm import ApiError, BadAnswer, models
from tao_slurm.problems import InvalidRequest

PAGE = b"<html><body>\x1b[31m502 Bad Gateway</body></html>"


def test_a_page_of_a_proxy_is_repeated_and_then_an_error() -> None:
    service = Service(httpx.Response(502, headers={"content-type": "text/html"}, content=PAGE), answer(status()))
    assert service.client().job(ID).status().status == "Running"
    with pytest.raises(ApiError) as raised:
        Service(httpx.Response(502, content=PAGE)).client(patience=0).job(ID).status()
    assert raised.value.code == "unknown" and raised.value.status == 502
    assert "502 Bad Gateway" in str(raised.value) and "\x1b" not in str(raised.value)


@pytest.mark.parametrize("content", [PAGE, b"", b"[]", b"null", b'{"id": 5}', b"{" * 100_000, b'{"status": {"a": "b"}}', b"\xff\xfe"])
def test_a_success_without_the_document_is_a_bad_answer(content: bytes) -> None:
    with pytest.raises(BadAnswer, match=r"GET /jobs/.*/status: .*HTTP 200"):
        Service(httpx.Response(200, content=content)).client().job(ID).status()


@pytest.mark.parametrize("code", [301, 302, 307])
def test_a_redirection_is_not_followed(code: int) -> None:
    service = Service(httpx.Response(code, headers={"location": "http://elsewhere/"}))
    with pytest.raises(BadAnswer, match="is http://service the address of the service"):
        service.client().submit("true")
    assert len(service.requests) == 1


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tao_slurm._sync.transport.LARGEST", 1000)
    with pytest.raises(BadAnswer, match="more than 1000 bytes"):
        Service(httpx.Response(200, content=b"x" * 1001)).client().job(ID).status()


def test_words_and_fields_of_a_newer_service_are_kept() -> None:
    view = Service(answer(status("Dreaming", "rem_sleep", mood="calm"))).client().job(ID).status()
    assert (view.status, str(view.status), f"{view.phase}") == ("Dreaming", "Dreaming", "rem_sleep")
    assert view.status is not models.Status.DONE and isinstance(view.status, models.Status)
    assert view.model_extra == {"mood": "calm"}
    assert models.Status("Done") is models.Status.DONE
    assert '"status":"Dreaming"' in view.model_dump_json()


def test_a_field_that_can_be_null_may_be_missing() -> None:
    assert Service(answer(status())).client().job(ID).status().failure is None


def test_of_the_answer_to_a_submission_only_the_id_is_needed(caplog: pytest.LogCaptureFixture) -> None:
    warning = {"code": "gpu_total", "detail": "the job gets 16 GPUs\x1b[31m", "pointer": ""}
    submitted = Service(answer(job(warnings=[warning], status=7), 201)).client().submit("true")
    assert str(submitted.id) == ID
    assert "the job gets 16 GPUs\ufffd[31m" in caplog.text


def test_a_problem_shows_every_fault() -> None:
    errors = [{"pointer": "/a", "code": "required", "detail": "is required"}, {"parameter": "b", "code": "invalid", "detail": "is bad"}, 7]
    with pytest.raises(InvalidRequest) as raised:
        Service(problem("invalid_request", 422, "2 faults", errors=errors, request_id="r1")).client().submit("true")
    assert str(raised.value) == "2 faults (invalid_request, HTTP 422)\n- /a: is required\n- b: is bad"
    assert raised.value.request_id == "r1" and raised.value.errors[0].pointer == "/a"


@pytest.mark.parametrize("broken", [{"detail": 5}, {"errors": {"a": 1}}, {"errors": [None] * 5}, {"title": None}, {"detail": "x" * 10**6}])
def test_a_problem_of_any_form_is_an_exception(broken: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest) as raised:
        Service(problem("invalid_request", 422) if not broken else answer({"code": "invalid_request"} | broken, 422)).client().submit("true")
    assert len(str(raised.value)) < 5000


def test_an_answer_that_is_not_encoded_as_it_says_is_a_bad_answer() -> None:
    broken = httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))
    with pytest.raises(BadAnswer, match="not encoded"):
        Service(lambda _: broken).client().job(ID).status()
