"""What a call sends."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from fake import ID, Service, answer, job, pipeline, pipeline_job
from tao_slurm import RequestError, models
from tao_slurm.arguments import hours


def sent(*words: Any, **arguments: Any) -> dict[str, Any]:
    service = Service(answer(job(), 201))
    service.client().submit(*words, **arguments)
    body: dict[str, Any] = service.bodies()[0]
    return body


def test_arguments_become_fields() -> None:
    body = sent(
        "python train.py", name="train", labels={"team": "vision"}, image="torch.sqsh", gpus=4, nodes=2, time="90m", cpus=8,
        memory="64G", gpu_type="a100", cluster="dgx", partition=["polar", "polar3"], account="ml", qos="high", begin="now+2hours",
        env={"A": "1"}, secret_env={"HF_TOKEN": "hf"}, launcher="torchrun", setup=["module load cuda"], workdir="/lustre/p",
        results=[models.ResultRequest(name="loss", regex="loss (.*)")], restart={"on": ["timeout"]},
    )
    assert body == {
        "command": "python train.py", "name": "train", "labels": {"team": "vision"}, "image": "torch.sqsh",
        "resources": {
            "gpus_per_node": 4, "num_nodes": 2, "time_hours": 1.5, "cpus_per_task": 8, "memory": "64G", "gpu_type": "a100",
        },
        "backend_details": {
            "cluster_name": "dgx", "partition": "polar,polar3", "account": "ml", "qos": "high", "begin": "now+2hours",
        },
        "docker_env_vars": {"A": "1"}, "secret_env_vars": {"HF_TOKEN": "hf"}, "launcher": "torchrun", "setup": ["module load cuda"],
        "workdir": "/lustre/p", "results": [{"name": "loss", "regex": "loss (.*)"}], "restart": {"on": ["timeout"]},
    }


def test_arguments_override_the_spec_field_by_field() -> None:
    spec = {"command": "old", "resources": {"num_nodes": 2, "gpus_per_node": 8}, "timeout_minutes": 5}
    expected = {"command": "new", "resources": {"num_nodes": 2, "gpus_per_node": 1}, "timeout_minutes": 5}
    assert sent("new", spec=spec, gpus=1) == expected
    assert sent("new", spec=models.JobRequest.model_validate(spec), gpus=1) == expected
    assert spec["resources"] == {"num_nodes": 2, "gpus_per_node": 8}


def test_words_are_quoted_for_the_shell() -> None:
    assert sent(["python", "a b.py", "$HOME"])["command"] == "python 'a b.py' '$HOME'"


def test_files_are_texts_bytes_or_objects() -> None:
    files = sent("true", files={"a": "text", "b": b"\x00\xff", "c": {"json": [1]}})["files"]
    assert files == {"a": {"text": "text"}, "b": {"base64": base64.b64encode(b"\x00\xff").decode()}, "c": {"json": [1]}}


def test_needs_are_ids_jobs_or_objects() -> None:
    earlier = Service(answer(job(), 201)).client().submit("true")
    need = {"job": ID, "when": "failed"}
    needs = sent("true", needs=[ID, UUID(ID), earlier, need, models.NeedRequest(job="prep", when=models.NeedWhen.FINISHED)])["needs"]
    assert needs == [{"job": ID}] * 3 + [need, {"job": "prep", "when": "finished"}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gpu": 4}, "there is no argument 'gpu'; did you mean 'gpus'?; `spec=` takes all fields"),
        ({"spec": {"comand": "x"}}, "there is no field comand; did you mean 'command'?"),
        ({"spec": {"resources": {"gpus_per_nod": 4}}}, "there is no field resources.gpus_per_nod; did you mean 'gpus_per_node'?"),
        ({"nodes": "many"}, "resources.num_nodes: Input should be a valid integer"),
        ({"time": "soon"}, "the time 'soon' is not like"),
    ],
)
def test_a_wrong_name_or_type_is_an_error_before_anything_is_sent(arguments: dict[str, Any], message: str) -> None:
    service = Service(answer(job(), 201))
    with pytest.raises(RequestError) as raised:
        service.client().submit("true", **arguments)
    assert message in str(raised.value) and isinstance(raised.value, ValueError)
    assert service.requests == []


def test_values_are_the_services_to_judge() -> None:
    assert sent("true", nodes=10**6, launcher="a-newer-one")["launcher"] == "a-newer-one"


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (2, 2.0), (0.5, 0.5), (timedelta(minutes=90), 1.5), ("90m", 1.5), ("4h", 4.0), ("1.5 h", 1.5), ("2d", 48.0), ("1800s", 0.5),
        ("01:30:00", 1.5), ("90:00", 1.5), ("1-12:00:00", 36.0), ("1-12:30", 36.5),
    ],
)
def test_times(time: Any, expected: float) -> None:
    assert hours(time) == pytest.approx(expected)


class Number:
    """As those of NumPy are."""

    def item(self) -> int:
        return 3


def test_a_sweep_is_an_array() -> None:
    service = Service(answer(job(), 201))
    client = service.client()
    client.sweep("python t.py --lr $lr", matrix={"lr": (0.1, 0.01), "seed": range(2), "n": [Number()]}, max_parallel=4, gpus=1)
    client.sweep("python t.py", values=[{"lr": 1}])
    client.sweep("python t.py", indices="0-9")
    matrix = {"lr": [0.1, 0.01], "seed": [0, 1], "n": [3]}
    assert [body["array"] for body in service.bodies()] == [
        {"matrix": matrix, "max_parallel": 4}, {"values": [{"lr": 1}]}, {"indices": "0-9"},
    ]
    assert service.bodies()[0]["resources"] == {"gpus_per_node": 1}


def test_a_number_that_json_lacks_is_an_error() -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        Service(answer(job(), 201)).client().sweep("true", matrix={"lr": [float("nan")]})


def test_a_pipeline_has_jobs_by_name() -> None:
    stored = pipeline("Pending", pipeline_job("prep", ID), pipeline_job("train", ID.replace("0", "1")))
    service = Service(answer(stored, 201))
    night = service.client().pipeline(
        {
            "prep": {"command": "python prep.py", "gpus": 0},
            "train": {"command": "python train.py", "needs": ["prep"], "time": "4h", "timeout_minutes": 5, "spec": {"num_gpu": 1}},
            "report": models.JobRequest(command="report", needs=[models.NeedRequest(job="train")]),
        },
        name="nightly",
        labels={"team": "vision"},
    )
    assert service.bodies() == [
        {
            "name": "nightly", "labels": {"team": "vision"},
            "jobs": {
                "prep": {"command": "python prep.py", "resources": {"gpus_per_node": 0}},
                "train": {
                    "command": "python train.py", "needs": [{"job": "prep"}], "resources": {"time_hours": 4.0}, "timeout_minutes": 5,
                    "num_gpu": 1,
                },
                "report": {"command": "report", "needs": [{"job": "train"}]},
            },
        }
    ]
    assert list(night.jobs) == ["prep", "train"] and str(night["prep"].id) == ID
    with pytest.raises(RequestError, match="job 'prep': there is no field gpu"):
        service.client().pipeline({"prep": {"command": "true", "gpu": 1}})
