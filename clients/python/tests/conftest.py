from __future__ import annotations

from functools import partial

import pytest
from tao_slurm import _retry


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pauses of a millisecond, and neither settings nor files of the machine."""
    monkeypatch.setattr(_retry, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(_retry, "LONGEST_PAUSE", 0.002)
    for name in ("TAO_SLURM_URL", "TAO_SLURM_TOKEN", "TAO_SLURM_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A time that only pauses move on."""
    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("time.sleep", wait)
    for module in ("transport", "streams"):
        monkeypatch.setattr(f"tao_slurm._sync.{module}.Tries", partial(_retry.Tries, clock=lambda: now[0]))
    return now
