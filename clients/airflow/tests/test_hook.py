"""Connections: addresses, tokens, and the test of a connection."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import httpx
import pytest
from airflow.sdk import Connection
from cluster import Cluster
from conftest import TOKEN
from fake import problem
from tao_slurm import SettingsError
from tao_slurm_airflow.hook import Settings, TaoSlurmHook


@pytest.mark.parametrize(
    ("fields", "url"),
    [
        ({"host": "https://slurm.example.org"}, "https://slurm.example.org"),
        ({"host": "https://slurm.example.org/tao", "port": 8443}, "https://slurm.example.org:8443/tao"),
        ({"host": "https://slurm.example.org:1", "port": 8443}, "https://slurm.example.org:1"),
        ({"host": "slurm.example.org"}, "https://slurm.example.org"),
        ({"host": "slurm.example.org", "port": 8080, "schema": "http"}, "http://slurm.example.org:8080"),
        ({"host": "::1", "port": 8080, "schema": "http"}, "http://[::1]:8080"),
    ],
)
def test_the_fields_of_a_connection_make_an_address(fields: dict[str, Any], url: str) -> None:
    assert Settings(Connection(conn_id="c", conn_type="tao_slurm", password=TOKEN, **fields)).url == url


@pytest.mark.parametrize("host", ["https://[half", "https://me:hunter2@service", "ftp://service", "", "https://service?x=1"])
def test_a_wrong_address_is_an_error_without_the_token(host: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings(Connection(conn_id="c", conn_type="tao_slurm", host=host, password=TOKEN, port=80)).client(patience=0)
    assert TOKEN not in str(raised.value) and "hunter2" not in str(raised.value)


def test_the_token_of_the_machine_goes_to_no_address_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAO_SLURM_TOKEN", "tsl_machine")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", '{"conn_type": "tao_slurm", "host": "http://elsewhere"}')
    with pytest.raises(SettingsError, match="has no password"):
        TaoSlurmHook("other").get_conn()


def test_the_test_of_a_connection_says_whose_token_it_is(cluster: Cluster) -> None:
    assert TaoSlurmHook().test_connection() == (True, "http://service: the token of etl allows read, write")
    assert cluster.requests[0].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("fault", [problem("unauthorized", 401), httpx.ConnectError("refused")])
def test_the_test_of_a_connection_reports_a_failure(cluster: Cluster, fault: Any) -> None:
    cluster.faults = [fault] * 9
    reached, text = TaoSlurmHook().test_connection()
    assert not reached and text and TOKEN not in text
    assert len(cluster.calls) == 1


def test_no_repr_and_no_log_has_the_token(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    hook = TaoSlurmHook()
    hook.test_connection()
    texts = [repr(value) for value in (hook, hook.settings, hook.get_conn(), asyncio.run(hook.aget_conn()))]
    assert TOKEN not in "".join(texts) + caplog.text
