"""Jobs and pipelines: waits, results, pages."""

from __future__ import annotations

import asyncio
import json
import pickle
from typing import Any

import httpx
import pytest
from fake import ID, Service, answer, pipeline, pipeline_job, problem, status
from tao_slurm import ApiError, BadAnswer, Job, JobCanceled, JobFailed, PipelineFailed, Unreachable, WaitTimeout
from tao_slurm.problems import NotFailed

OTHER = ID.replace("0", "1")
ENDED = {"Done": answer(status("Done", "ended")), "Canceled": answer(status("Canceled", "ended"))}
FAILURE = {"rule": "file-missing", "category": "data", "node": "node07", "advice": "Check the path."}


def waits(service: Service) -> list[tuple[str | None, str | None]]:
    return [(request.url.params.get("wait"), request.headers.get("if-none-match")) for request in service.requests]


def test_a_wait_asks_again_with_the_newest_etag_until_the_job_has_ended() -> None:
    service = Service(answer(status("Pending", "in_queue"), etag='"1"'), answer(status(), etag='"2"'), ENDED["Done"])
    assert service.client().job(ID).wait().status == "Done"
    assert waits(service) == [("0", None), ("30", '"1"'), ("30", '"2"')]


def test_a_wait_survives_lost_answers() -> None:
    service = Service(answer(status(), etag='"1"'), httpx.ReadError("reset"), problem("watchers_busy", 503), ENDED["Done"])
    seen: list[str] = []
    service.client().job(ID).wait(progress=lambda view: seen.append(view.status))
    assert seen == ["Running", "Done"]


def test_a_wait_that_takes_too_long_leaves_the_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tao_slurm._sync.waiting.PAUSE", 0.01)
    service = Service(answer(status(), etag='"1"'))
    with pytest.raises(TimeoutError) as raised:
        service.client().job(ID).wait(timeout=0.05)
    assert isinstance(raised.value, WaitTimeout) and "0.05 s" in str(raised.value)
    assert {request.method for request in service.requests} == {"GET"}


def test_a_wait_for_a_service_that_is_away_ends_with_its_timeout() -> None:
    with pytest.raises(WaitTimeout, match="does not answer"):
        Service(httpx.ConnectError("refused")).client(patience=1000).job(ID).wait(timeout=0.01)


def test_a_wait_pauses_if_the_answers_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("tao_slurm._sync.waiting.time.sleep", pauses.append)
    same = httpx.Response(304)
    service = Service(answer(status(), etag='"1"'), same, same, answer(status()), answer(status()), ENDED["Done"])
    service.client().job(ID).wait()
    assert pauses == [1.0] * 4


def of_results(*found: dict[str, Any], tasks: int | None = None, state: str = "Done") -> Service:
    counts = None if tasks is None else dict.fromkeys(("total", "pending", "running", "done", "error", "canceled"), tasks)
    fields: dict[str, Any] = {"attempt": 1, "slurm_job_id": None, "slurm_state": None, "nodes": [], "exit_code": 0, "exit_signal": None, "message": None}
    times = {"started_on": None, "ended_on": None}

    def reply(request: httpx.Request) -> httpx.Response:
        what = request.url.path.rpartition("/")[2]
        if what == "results":
            return answer(list(found))
        if what == "tasks":
            first = int(request.url.params.get("page_token", "0"))
            page = [{"task": n, "status": "done", "parameters": {"lr": n}} | fields | times for n in range(first, min(first + 2, tasks or 1))]
            token = str(first + 2) if first + 2 < (tasks or 1) else None
            return answer({"tasks": page, "next_page_token": token})
        return answer(status(state, "ended", tasks=counts, failure=FAILURE if state == "Error" else None))

    return Service(reply)


def result(task: int, name: str, value: Any, why: str | None = None) -> dict[str, Any]:
    return {"task": task, "name": name, "value": value, "problem": why}


def test_results_have_values_by_name_and_say_why_one_is_missing() -> None:
    found = of_results(result(0, "loss", 0.5), result(0, "note", None), result(0, "f1", None, "no such file")).client().job(ID).result()
    assert found["loss"] == 0.5 and found["note"] is None and dict(found[0]) == {"loss": 0.5, "note": None}
    with pytest.raises(KeyError, match="no such file"):
        found["f1"]
    assert found[0].problems == {"f1": "no such file"} and len(found) == 1


def test_results_of_a_sweep_have_parameters_of_all_pages() -> None:
    found = of_results(result(4, "loss", 4), result(0, "loss", 0), tasks=5).client().job(ID).result()
    assert [(task.task, task.parameters["lr"], task.get("loss")) for task in found] == [(0, 0, 0), (1, 1, None), (2, 2, None), (3, 3, None), (4, 4, 4)]
    assert found[4]["loss"] == 4 and len(found[1:3]) == 2
    with pytest.raises(KeyError, match="the job has 5 tasks"):
        found["loss"]


def test_a_failed_job_raises_why() -> None:
    failed = of_results(result(0, "loss", 1), state="Error").client().job(ID)
    with pytest.raises(JobFailed) as raised:
        failed.result()
    assert raised.value.failure and raised.value.failure.rule == "file-missing" and raised.value.job == failed
    assert str(raised.value) == f"job {ID} ended in Error: it runs Check the path."
    assert failed.results()["loss"] == 1
    with pytest.raises(JobCanceled):
        of_results(state="Canceled").client().job(ID).result()


def test_exceptions_reach_another_process() -> None:
    with pytest.raises(JobFailed) as raised:
        of_results(state="Error").client().job(ID).result()
    refused = ApiError(status=503, title="busy", code="watchers_busy", retry_after=2.0)
    away = Unreachable("no answer", tries=3, idempotency_key="mine")
    for error in (raised.value, refused, away, WaitTimeout("too long"), BadAnswer("a page")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
    assert pickle.loads(pickle.dumps(away)).idempotency_key == "mine"


def test_an_asynchronous_job_has_results_and_tasks() -> None:
    async def read() -> tuple[Any, list[int]]:
        async with of_results(result(0, "loss", 0.5), tasks=3).async_client() as client:
            job = client.job(ID)
            return await job.result(), [task.task async for task in job.tasks]

    found, numbers = asyncio.run(read())
    assert found[0]["loss"] == 0.5 and numbers == [0, 1, 2]


def test_a_pipeline_has_results_of_the_jobs_that_ran() -> None:
    jobs = pipeline_job("prep", ID), pipeline_job("undo", OTHER, "Canceled", skipped=True)
    inner = of_results(result(0, "rows", 7))
    service = Service(lambda request: answer(pipeline("Done", *jobs)) if "/pipelines/" in str(request.url) else inner(request))
    found = service.client().open_pipeline(ID).result()
    assert found["prep"]["rows"] == 7 and list(found) == ["prep"]


def test_a_failed_pipeline_raises_which_jobs() -> None:
    jobs = pipeline_job("prep", ID, "Error"), pipeline_job("train", OTHER, "Canceled", skipped=True)
    with pytest.raises(PipelineFailed) as raised:
        Service(answer(pipeline("Error", *jobs))).client().open_pipeline(ID).result()
    assert raised.value.failed == {"prep": "Error"} and "- prep: Error: prep ended" in str(raised.value)


def test_controls_send_what_the_api_takes() -> None:
    service = Service(answer(status(), 202))
    job = service.client().job(ID)
    job.cancel()
    job.cancel(tasks="3,7-9")
    job.pause()
    job.resume()
    job.retry(tasks="failed", secret_env={"A": "b"})
    sent = [(request.url.path.rpartition("/")[2], json.loads(request.content or b"null")) for request in service.requests]
    assert sent == [
        ("cancel", None), ("cancel", {"tasks": "3,7-9"}), ("pause", None), ("resume", None),
        ("retry", {"tasks": "failed", "secret_env_vars": {"A": "b"}}),
    ]
    keys = [request.headers.get("idempotency-key") for request in service.requests]
    assert [key is None for key in keys] == [True, True, True, False, False]


def test_lists_go_over_all_pages_with_their_filters() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        token = request.url.params.get("page_token")
        return answer({"jobs": [], "next_page_token": None if token else "next", "facets": None})

    service = Service(page)
    assert list(service.client().jobs(status=["Running", "Pending"], labels={"team": "vision"}, q="a b")) == []
    first, second = (request.url.params for request in service.requests)
    assert first.get_list("status") == ["Running", "Pending"] and first["label"] == "team:vision" and first["q"] == "a b"
    assert "page_token" not in first and second["page_token"] == "next"


def test_logs_that_are_not_followed_are_lines() -> None:
    service = Service(httpx.Response(200, headers={"content-type": "text/plain"}, content=b"one\r\n\ntwo\xff\n"))
    assert list(service.client().job(ID).logs(tail=3, stream="out")) == ["one", "", "two\ufffd"]
    assert str(service.requests[0].url) == f"http://service/jobs/{ID}/logs?stream=out&tail=3"
    empty = Service(httpx.Response(200, headers={"content-type": "text/plain"}))
    assert list(empty.client().job(ID).logs()) == []


def test_a_diagnosis_of_a_job_that_has_not_failed_is_a_problem() -> None:
    with pytest.raises(NotFailed):
        Service(problem("not_failed", 404)).client().job(ID).diagnosis()


def test_jobs_are_equal_by_their_id() -> None:
    client = Service(answer(status())).client()
    assert client.job(ID) == client.job(ID.upper()) != client.job(OTHER)
    assert len({client.job(ID), client.job(ID)}) == 1 and repr(client.job(ID)) == f"Job('{ID}')"
    assert isinstance(client.job(ID), Job)
