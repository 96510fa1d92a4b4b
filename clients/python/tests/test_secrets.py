"""Secrets are in no text about an object, in no log and in no exception."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake import ID, Service, answer, job, problem
from tao_slurm import RequestError, models
from tao_slurm._body import Body, encode
from tao_slurm._secret_names import SECRET

TOKEN, HIDDEN = "tsl_secret", "hf_hidden"
DOCUMENT = Path(__file__).parents[3] / "openapi" / "openapi.json"


def hides(text: str) -> bool:
    return TOKEN not in text and HIDDEN not in text


def test_no_repr_shows_a_secret() -> None:
    request = models.JobRequest(command="true", secret_env_vars={"A": HIDDEN}, docker_env_vars={"B": HIDDEN})
    pipeline = models.PipelineRequest(jobs={"a": request})
    credentials = models.EnrootCredentials.model_validate({"machine": "nvcr.io", "login": "me", "password": HIDDEN})
    client = Service(answer(job(), 201)).client()
    submitted = client.submit("true", secret_env={"A": HIDDEN})
    for value in (request, pipeline, credentials, client, client.api, client._transport, client._transport.settings, submitted, Body(request)):
        assert hides(repr(value)) and hides(str(value)), type(value)
    assert "secret_env_vars='…'" in repr(request)


def test_a_secret_is_sent() -> None:
    service = Service(answer(job(), 201))
    client = service.client()
    client.submit("true", secret_env={"A": HIDDEN})
    client.submit(spec=models.JobRequest(command="true", secret_env_vars={"A": HIDDEN}))
    assert [body["secret_env_vars"] for body in service.bodies()] == [{"A": HIDDEN}] * 2
    assert {request.headers["authorization"] for request in service.requests} == {f"Bearer {TOKEN}"}
    credentials = {"machine": "nvcr.io", "login": "me", "password": HIDDEN}
    assert json.loads(encode(models.EnrootCredentials.model_validate(credentials))) == credentials


def test_no_log_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = Service(httpx.ReadError("reset"), problem("database_unavailable", 503), answer(job(), 201))
    service.client().submit("true", secret_env={"A": HIDDEN})
    assert "again in" in caplog.text and hides(caplog.text)


@pytest.mark.parametrize(
    "arguments", [{"secret_env": {"A": [HIDDEN]}}, {"secret_env": HIDDEN}, {"secret_env": {"A": HIDDEN}, "spec": {HIDDEN[:2]: 1}}]
)
def test_no_exception_shows_a_secret(arguments: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as raised:
        Service(answer(job(), 201)).client().submit("true", **arguments)
    assert hides("".join(traceback.format_exception(raised.value)))
    with pytest.raises(Exception) as failed:
        Service(httpx.ReadError("reset")).client(patience=0).submit("true", secret_env={"A": HIDDEN})
    assert hides("".join(traceback.format_exception(failed.value)))
    with pytest.raises(ValueError) as refused:
        models.JobRequest.model_validate({"secret_env_vars": {"A": [HIDDEN]}})
    assert hides(str(refused.value))


def test_every_field_that_the_document_marks_is_hidden() -> None:
    schemas = json.loads(DOCUMENT.read_text())["components"]["schemas"]
    marked = {
        name
        for owner, schema in schemas.items()
        for name, field in schema.get("properties", {}).items()
        if (field.get("writeOnly") or "SecretText" in str(field)) and owner != "ContainerJob"
    }
    assert {"secret_env_vars", "token", "webhook", "password"} <= marked <= SECRET
    assert hides(repr(models.NewTokenView.model_construct(token=TOKEN)))
