from __future__ import annotations

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
