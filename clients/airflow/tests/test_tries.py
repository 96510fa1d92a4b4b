"""Tries of a task: which job each one follows."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from airflow.sdk.exceptions import TaskDeferred
from cluster import Cluster, Store, context
from tao_slurm import Unreachable
from tao_slurm_airflow.operator import TaoSlurmOperator

HIDDEN = "hf_hidden"


def attempt(store: Store, number: int, max_tries: int = 2, **arguments: Any) -> str | None:
    """The job that a try waits for; `None` if it does not wait."""
    task = TaoSlurmOperator(**{"task_id": "train", "command": "true", "deferrable": True, **arguments})
    try:
        task.execute(context(store, try_number=number, max_tries=max_tries))
    except TaskDeferred as deferred:
        return str(deferred.trigger.job_id)
    return None


def test_another_try_finds_the_running_job(cluster: Cluster) -> None:
    store = Store()
    assert attempt(store, 1) == attempt(store, 2) == attempt(store, 2) == attempt(store, 3)
    assert len(cluster.jobs) == 1 and not cluster.count("POST /jobs/")


@pytest.mark.parametrize("is_stored", [True, False])
def test_another_try_finds_the_job_of_a_worker_that_died_before_the_answer(
    cluster: Cluster, is_stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, submit = Store(), cluster.submit

    def lost(body: dict[str, Any]) -> httpx.Response:
        if is_stored:
            submit(body)
        raise httpx.ReadError("reset")

    with monkeypatch.context() as patched:
        patched.setattr(cluster, "submit", lost)
        with pytest.raises(Unreachable):
            attempt(store, 1)
    assert attempt(store, 2) in cluster.jobs and len(cluster.jobs) == 1


def test_another_try_takes_the_results_of_a_job_that_has_ended_meanwhile(cluster: Cluster) -> None:
    store = Store()
    id = attempt(store, 1)
    assert id
    cluster.state[id] = "Done"
    assert attempt(store, 2) is None and len(cluster.jobs) == 1 and not cluster.count("POST /jobs/")


@pytest.mark.parametrize("state", ["Error", "Canceled"])
def test_another_try_runs_a_failed_job_again_under_its_id_once(cluster: Cluster, state: str) -> None:
    store = Store()
    secret: dict[str, Any] = {"secret_env": {"HF_TOKEN": HIDDEN}}
    id = attempt(store, 1, **secret)
    assert id
    cluster.state[id], cluster.secrets = state, {"HF_TOKEN"}
    assert attempt(store, 2, **secret) == id and cluster.state[id] == "Running"
    # The worker of the second try starts anew.
    assert attempt(store, 2, **secret) == id
    (again,) = [request for request in cluster.requests if request.url.path.endswith("/retry")]
    assert again.headers["idempotency-key"] == f"airflow-{id}-2"


def test_the_same_try_does_not_run_a_failed_job_again(cluster: Cluster) -> None:
    store = Store()
    id = attempt(store, 1)
    assert id
    cluster.state[id] = "Error"
    with pytest.raises(Exception, match="ended in Error"):
        attempt(store, 1)
    assert not cluster.count("POST /jobs/") and len(cluster.jobs) == 1


def test_a_failed_job_whose_secrets_are_not_known_is_submitted_anew(cluster: Cluster) -> None:
    store = Store()
    id = attempt(store, 1)
    assert id
    cluster.state[id], cluster.secrets = "Error", {"OF_A_STEP"}
    fresh = attempt(store, 2)
    assert fresh != id and fresh == attempt(store, 3) and len(cluster.jobs) == 2


def test_a_changed_task_follows_a_running_job_and_submits_after_a_failed_one(cluster: Cluster) -> None:
    store = Store()
    id = attempt(store, 1)
    assert id and attempt(store, 2, command="false") == id and len(cluster.jobs) == 1
    cluster.state[id] = "Error"
    fresh = attempt(store, 3, command="false")
    assert fresh and fresh != id and cluster.jobs[fresh]["command"] == "false"


@pytest.mark.parametrize(("state", "then"), [("Running", "Canceled"), ("Done", "Done"), ("Error", "Error")])
def test_a_cleared_task_submits_another_job_and_cancels_what_was_left(cluster: Cluster, state: str, then: str) -> None:
    store = Store()
    id = attempt(store, 1)
    assert id
    cluster.state[id] = state
    # Airflow raises `max_tries` then.
    fresh = attempt(store, 2, max_tries=3)
    assert fresh and fresh != id and cluster.state == {id: then, fresh: "Running"}


def test_a_cleared_task_runs_although_its_job_was_deleted(cluster: Cluster) -> None:
    store = Store()
    attempt(store, 1)
    cluster.jobs.clear()
    assert attempt(store, 2, max_tries=3) in cluster.jobs


def test_two_runs_have_two_jobs(cluster: Cluster) -> None:
    assert attempt(Store(), 1) != attempt(Store(), 1)
