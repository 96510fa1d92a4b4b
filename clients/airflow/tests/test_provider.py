"""What Airflow reads of the package, and secrets in what it stores."""

from __future__ import annotations

import json
from importlib import import_module, resources
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.execution_time import task_runner
from cluster import Cluster, Store, context
from tao_slurm import models
from tao_slurm_airflow import get_provider_info, operator
from tao_slurm_airflow.operator import TaoSlurmOperator
from tao_slurm_airflow.secrets import secret_values
from tao_slurm_airflow.text import one_line

HIDDEN = "hf_hidden"
SECRETS: dict[str, Any] = {
    "secret_env": {"A": HIDDEN},
    "env": {"HF_TOKEN": HIDDEN, "SEED": "7"},
    "spec": {"cloud_metadata": {"deep": [{"x": HIDDEN}]}, "webhook": {"url": "https://r", "secret": HIDDEN}},
    "steps": [{"name": "a", "command": "true", "secret_env": {"B": HIDDEN}, "env": {"API_KEY": HIDDEN}}],
}


def test_the_description_of_the_package_fits_airflows_schema_and_its_names_exist() -> None:
    info = get_provider_info()
    schema = resources.files("airflow").joinpath("provider_info.schema.json").read_text()
    jsonschema.validate(info, json.loads(schema))
    classes = [*info["extra-links"], info["connection-types"][0]["hook-class-name"]]
    for path in classes:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name)
    for kind in ("hooks", "operators", "triggers"):
        for module in info[kind][0]["python-modules"]:
            import_module(module)


def test_all_secrets_of_a_request_are_masked_before_it_is_sent(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []

    def mask(value: str) -> None:
        assert not cluster.calls, "too late"
        masked.append(value)

    monkeypatch.setattr(operator, "mask_secret", mask)
    with pytest.raises(TaskDeferred):
        TaoSlurmOperator(task_id="train", deferrable=True, **SECRETS).execute(context(Store()))
    assert HIDDEN in masked and "7" not in masked


@pytest.mark.parametrize("field", [*SECRETS])
def test_a_secret_of_each_field_is_found(cluster: Cluster, field: str) -> None:
    task = TaoSlurmOperator(task_id="train", deferrable=True, **{"command": "true", field: SECRETS[field]})
    with pytest.raises(TaskDeferred):
        task.execute(context(Store()))
    assert HIDDEN in task._secrets


def test_secrets_in_models_are_found() -> None:
    step = models.ComponentRequest(name="a", command="true", secret_env={"B": HIDDEN})
    request = models.JobRequest(secret_env_vars={"A": HIDDEN}, steps=[step])
    assert list(secret_values({name: getattr(request, name) for name in request.model_fields_set})) == [HIDDEN, HIDDEN]


def test_the_rendered_fields_that_airflow_shows_have_no_secret() -> None:
    task = TaoSlurmOperator(task_id="train", **SECRETS)
    shown = task_runner._serialize_rendered_fields(task)
    del shown["spec"]
    assert HIDDEN not in json.dumps(shown) and "***" in json.dumps(shown)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\nb", "a b"), ("a\x1b[2J\r", "a\ufffd[2J"), ("x" * 20, "x" * 9 + "…"), ("\u202eabc", "\ufffdabc"), ("tab\tü", "tab ü")],
)
def test_texts_of_jobs_stay_in_their_line(text: str, line: str) -> None:
    assert one_line(text, 10) == line
