"""The operator: submission, deferral, ends and kills."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferralError, TaskDeferralTimeout, TaskDeferred
from cluster import Cluster, Store, Ti, context
from fake import ID
from tao_slurm_airflow import ending
from tao_slurm_airflow.operator import TaoSlurmOperator
from tao_slurm_airflow.trigger import TaoSlurmTrigger


def operator(**arguments: Any) -> TaoSlurmOperator:
    return TaoSlurmOperator(**{"task_id": "train", "command": "true", "deferrable": True, **arguments})


def deferred(task: TaoSlurmOperator, context: Context) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        task.execute(context)
    return raised.value


def only(cluster: Cluster) -> str:
    (id,) = cluster.jobs
    return id


def test_a_job_is_submitted_and_the_task_waits_in_the_triggerer(cluster: Cluster) -> None:
    now = context(Store())
    waits = deferred(operator(gpus="2", env={"SEED": "7"}, execution_timeout=timedelta(hours=1)), now)
    id = only(cluster)
    assert isinstance(waits.trigger, TaoSlurmTrigger) and waits.trigger.job_id == id
    assert (waits.method_name, waits.timeout) == ("execute_complete", timedelta(hours=1))
    assert cluster.jobs[id] == {
        "id": id,
        "name": "nightly.train",
        "command": "true",
        "resources": {"gpus_per_node": 2},
        "docker_env_vars": {"SEED": "7"},
        "labels": {"airflow_dag": "nightly", "airflow_run": "manual", "airflow_task": "train"},
    }
    assert cast(Ti, now["ti"]).xcom == {"job_id": id}


def test_a_whole_job_is_a_spec_and_arguments_override_it(cluster: Cluster) -> None:
    spec = {"command": "false", "name": "n", "labels": {"a": "b", "airflow_task": "x"}, "array": {"matrix": {"lr": [1, 2]}}}
    deferred(operator(spec=spec), context(Store()))
    job = cluster.jobs[only(cluster)]
    assert (job["command"], job["name"], job["array"]) == ("true", "n", {"matrix": {"lr": [1, 2]}})
    assert job["labels"]["a"] == "b" and job["labels"]["airflow_task"] == "x"


def test_every_argument_of_a_submission_is_one_of_the_operator_and_a_template(cluster: Cluster) -> None:
    from tao_slurm import JobArguments

    assert set(TaoSlurmOperator.arguments) == set(JobArguments.__annotations__)
    assert set(TaoSlurmOperator.template_fields) == {"command", "spec", "tao_slurm_conn_id", *JobArguments.__annotations__}
    for field in TaoSlurmOperator.template_fields:
        assert hasattr(operator(), field), field


def test_the_end_of_a_job_ends_the_task_with_its_results(cluster: Cluster) -> None:
    cluster.jobs[ID], cluster.state[ID] = {}, "Done"
    task = operator()
    assert task.execute_complete(context(Store()), {"job_id": ID, "status": "Done"}) == {"loss": 0.5}
    assert task.operator_extra_links[0].get_link(task, ti_key=None) == f"http://service/ui/jobs/{ID}"  # type: ignore[arg-type]


def test_a_task_that_is_not_deferrable_waits_in_the_worker(cluster: Cluster) -> None:
    cluster.new = "Done"
    assert operator(deferrable=False).execute(context(Store())) == {"loss": 0.5}


def test_large_results_are_not_pushed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "LARGEST_RESULTS", 5)
    cluster.jobs[ID], cluster.state[ID] = {}, "Done"
    assert operator().execute_complete(context(Store()), {"job_id": ID}) is None


def test_a_failure_shows_its_cause_and_the_last_lines(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.jobs[ID], cluster.state[ID] = {}, "Error"
    with pytest.raises(AirflowException, match="ended in Error: it is Error") as raised:
        operator(secret_env={"HF_TOKEN": "hf_hidden", "SHORT": "1"}).execute_complete(context(Store()), {"job_id": ID})
    assert not isinstance(raised.value, AirflowFailException)
    logged = capsys.readouterr().out
    assert "oom on node01: CUDA out of memory" in logged and "| line 1" in logged
    assert "2 of ***" in logged and "hf_hidden" not in logged + str(raised.value)
    assert "\x1b[31m2" not in logged and "\x1b" not in str(raised.value)


def test_a_job_that_was_canceled_or_deleted_fails_the_task_without_another_try(cluster: Cluster) -> None:
    cluster.jobs[ID], cluster.state[ID] = {}, "Canceled"
    with pytest.raises(AirflowFailException, match="ended in Canceled"):
        operator().execute_complete(context(Store()), {"job_id": ID})
    cluster.jobs.clear()
    with pytest.raises(AirflowFailException, match="was deleted"):
        operator().execute_complete(context(Store()), {"job_id": ID})


def test_a_kill_of_a_worker_cancels_the_job_and_allows_another_try(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator(deferrable=False)
    # A signal arrives during the wait.
    monkeypatch.setattr(task, "_show", lambda status: task.on_kill())
    with pytest.raises(AirflowException, match="Canceled") as raised:
        task.execute(context(Store()))
    assert not isinstance(raised.value, AirflowFailException)
    assert cluster.state[only(cluster)] == "Canceled"


def test_a_kill_during_the_submission_cancels_the_job(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    task, submit = operator(), cluster.submit

    def killed(body: dict[str, Any]) -> Any:
        # The service does not know the job yet.
        task.on_kill()
        return submit(body)

    monkeypatch.setattr(cluster, "submit", killed)
    deferred(task, context(Store()))
    assert cluster.state[only(cluster)] == "Canceled"


def test_a_kill_before_the_submission_does_nothing(cluster: Cluster) -> None:
    operator().on_kill()
    assert not cluster.calls


@pytest.mark.parametrize(
    ("error", "number", "status"),
    [("Trigger timeout", 1, "Canceled"), ("Trigger failure", 1, "Running"), ("Trigger failure", 3, "Canceled")],
)
def test_a_job_that_cannot_be_waited_for_is_canceled_unless_another_try_finds_it(
    cluster: Cluster, error: str, number: int, status: str
) -> None:
    store = Store()
    deferred(operator(), context(store))
    with pytest.raises((TaskDeferralTimeout, TaskDeferralError)):
        operator().resume_execution("__fail__", {"error": error}, context(store, try_number=number))
    assert cluster.state[only(cluster)] == status


def test_templates_reach_nested_values(cluster: Cluster) -> None:
    files, results = {"a.json": {"json": ["{{ n }}"]}}, [{"name": "r{{ n }}", "regex": "x"}]
    task = operator(command="run {{ n }}", env={"A": "{{ n }}"}, files=files, gpus="{{ n }}", results=results)
    task.render_template_fields({"n": 4})  # type: ignore[typeddict-unknown-key]
    deferred(task, context(Store()))
    job = cluster.jobs[only(cluster)]
    assert (job["command"], job["docker_env_vars"], job["resources"]) == ("run 4", {"A": "4"}, {"gpus_per_node": 4})
    assert (job["files"], job["results"][0]["name"]) == ({"a.json": {"json": ["4"]}}, "r4")


def test_tasks_can_be_mapped() -> None:
    from airflow.sdk import DAG

    with DAG("mapped"):
        TaoSlurmOperator.partial(task_id="train", gpus=0).expand(env=[{"LR": "1"}, {"LR": "2"}])
        with pytest.raises(TypeError, match="gpuz"):
            TaoSlurmOperator.partial(task_id="other", gpuz=0)
