"""The trigger: its serialization, what does not end it, and kills."""

from __future__ import annotations

import asyncio
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from airflow.serialization.encoders import encode_trigger
from airflow.triggers.base import TriggerEvent
from cluster import Cluster
from fake import ID, answer, problem
from tao_slurm_airflow import trigger as module
from tao_slurm_airflow.trigger import TaoSlurmTrigger


def started(cluster: Cluster, state: str) -> TaoSlurmTrigger:
    cluster.jobs[ID], cluster.state[ID] = {}, state
    return TaoSlurmTrigger(ID, "tao_slurm_default")


async def fired(trigger: TaoSlurmTrigger) -> list[TriggerEvent]:
    return [event async for event in trigger.run()]


def test_a_trigger_is_the_same_after_its_serialization() -> None:
    path, kwargs = TaoSlurmTrigger(ID, "lab").serialize()
    module, _, name = path.rpartition(".")
    again = getattr(import_module(module), name)(**kwargs)
    assert type(again) is TaoSlurmTrigger and again.serialize() == (path, kwargs)
    assert kwargs == {"job_id": ID, "tao_slurm_conn_id": "lab"}
    assert encode_trigger({"classpath": path, "kwargs": kwargs}) == {"classpath": path, "kwargs": kwargs}
    assert "tsl_" not in repr(again)


def test_it_does_not_fire_before_the_scheduler_knows_that_the_worker_ended(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def slept(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(module, "SHORTEST_WAIT", 1000.0)
    monkeypatch.setattr(asyncio, "sleep", slept)
    asyncio.run(fired(started(cluster, "Done")))
    assert pauses[-1] > 100


@pytest.mark.parametrize("state", ["Done", "Error", "Canceled"])
def test_it_fires_once_when_the_job_has_ended(cluster: Cluster, state: str) -> None:
    events = asyncio.run(fired(started(cluster, state)))
    assert [event.payload for event in events] == [{"job_id": ID, "status": state}]


def test_a_stream_that_ends_before_the_job_is_followed_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = started(cluster, "Running")
    count = cluster.of_job

    def later(id: str, action: str, body: dict[str, Any]) -> httpx.Response:
        if cluster.count(f"GET /jobs/{ID}/events") == 3:
            cluster.state[ID] = "Done"
        return count(id, action, body)

    monkeypatch.setattr(cluster, "of_job", later)
    assert asyncio.run(fired(trigger))[0].payload["status"] == "Done"
    assert "Last-Event-ID" not in cluster.requests[0].headers
    assert [dict(request.url.params).get("after") for request in cluster.requests if "events" in request.url.path] == ["0", "1", "1"]


FAULTS = [
    httpx.ConnectError("refused"),
    httpx.ReadError("reset"),
    problem("unauthorized", 401),
    problem("forbidden", 403),
    problem("database_unavailable", 503),
    httpx.Response(200, html="<p>Log in</p>"),
    answer({"unexpected": True}),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_failure_of_the_service_ends_it(cluster: Cluster, fault: Any) -> None:
    cluster.faults = [fault] * 40
    assert [event.payload["status"] for event in asyncio.run(fired(started(cluster, "Done")))] == ["Done"]
    assert not cluster.faults


def test_a_new_token_is_read_after_a_failure(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.faults = [problem("unauthorized", 401)]
    trigger = started(cluster, "Done")

    async def changed(text: str, *args: Any) -> None:
        monkeypatch.setenv("AIRFLOW_CONN_TAO_SLURM_DEFAULT", '{"conn_type": "tao_slurm", "host": "http://service", "password": "tsl_new"}')

    monkeypatch.setattr(asyncio, "sleep", changed)
    asyncio.run(fired(trigger))
    assert [cluster.requests[place].headers["authorization"] for place in (0, -1)] == ["Bearer tsl_secret", "Bearer tsl_new"]


def test_a_deleted_job_ends_it(cluster: Cluster) -> None:
    events = asyncio.run(fired(TaoSlurmTrigger(ID, "tao_slurm_default")))
    assert [event.payload for event in events] == [{"job_id": ID, "status": None}]


@pytest.mark.parametrize(("state", "status"), [("failed", "Canceled"), (None, "Canceled"), ("success", "Canceled"), ("deferred", "Running")])
def test_a_kill_cancels_the_job_and_a_move_to_another_triggerer_does_not(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, state: str | None, status: str
) -> None:
    trigger = started(cluster, "Running")
    trigger.task_instance = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1)  # type: ignore[assignment]

    async def asked(*task: Any) -> str | None:
        assert task == ("d", "r", "t", -1)
        return state

    monkeypatch.setattr(module, "task_state", asked)
    asyncio.run(trigger.on_kill())
    assert cluster.state[ID] == status


def test_a_kill_cancels_the_job_when_airflow_does_not_answer(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = started(cluster, "Running")
    trigger.task_instance = SimpleNamespace(dag_id="d", run_id="r", task_id="t", map_index=-1)  # type: ignore[assignment]

    async def fails(*task: Any) -> str | None:
        raise OSError("no API server")

    monkeypatch.setattr(module, "task_state", fails)
    asyncio.run(trigger.on_kill())
    assert cluster.state[ID] == "Canceled"


def test_the_end_of_the_triggerer_cancels_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = started(cluster, "Running")

    async def stopped() -> None:
        running = asyncio.create_task(fired(trigger))
        while not cluster.count(f"GET /jobs/{ID}/status"):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await trigger.cleanup()

    asyncio.run(stopped())
    assert cluster.state[ID] == "Running" and not cluster.count(f"POST /jobs/{ID}/cancel")
