from __future__ import annotations

import os
import tempfile

# Airflow reads them when it is imported.
os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp())
os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "True"

from typing import Any

import pytest
from cluster import Cluster
from tao_slurm import AsyncClient, Client, _retry
from tao_slurm_airflow import hook, trigger

TOKEN = "tsl_secret"


@pytest.fixture(autouse=True)
def no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a millisecond, a connection, and no settings of the machine."""
    monkeypatch.setattr(_retry, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(_retry, "LONGEST_PAUSE", 0.002)
    monkeypatch.setattr(trigger, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(trigger, "SHORTEST_WAIT", 0.0)
    monkeypatch.setattr(trigger, "LONGEST_PAUSE", 0.002)
    for name in ("TAO_SLURM_URL", "TAO_SLURM_TOKEN", "TAO_SLURM_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_TAO_SLURM_DEFAULT", f'{{"conn_type": "tao_slurm", "host": "http://service", "password": "{TOKEN}"}}')


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """The service of every connection."""
    service = Cluster()

    def client(url: str, token: str, **options: Any) -> Client:
        return service.client(**{"url": url, "token": token, **options, "patience": min(options["patience"], 0.5)})

    def async_client(url: str, token: str, **options: Any) -> AsyncClient:
        return service.async_client(**{"url": url, "token": token, **options, "patience": min(options["patience"], 0.05)})

    monkeypatch.setattr(hook, "Client", client)
    monkeypatch.setattr(hook, "AsyncClient", async_client)
    return service
