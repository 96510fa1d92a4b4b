"""The bar."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from fake import ID, Service, answer, pipeline, pipeline_job, status
from tao_slurm.models import PipelineView, StatusView
from tao_slurm.progress import state

COUNTS = {"total": 6, "pending": 1, "running": 2, "done": 1, "error": 1, "canceled": 1}


def view(*words: str, **more: Any) -> StatusView:
    return StatusView.model_validate(status(*words, **more))


def test_what_a_bar_shows() -> None:
    assert state(view(name="train", progress={"percent": 37, "metrics": {}})) == (37, 100, "train: Running")
    assert state(view("Done", "ended")) == (100, 100, f"{ID}: Done")
    assert state(view(tasks=COUNTS)) == (3, 6, f"{ID}: Running")
    jobs = pipeline_job("a", ID), pipeline_job("b", ID, "Running", finished_on=None)
    assert state(PipelineView.model_validate(pipeline("Running", *jobs))) == (1, 2, "nightly: Running")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, output: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", output)
    running = status(name="train\x1b[31m", message="epoch 3\n of 10")
    Service(answer(running, etag='"1"'), answer(status("Done", "ended"))).client().job(ID).wait(progress=True)
    return output.getvalue()


def test_a_bar_is_drawn_on_a_terminal_and_without_what_controls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal())
    assert "train\ufffd[31m: Running" in text and "epoch 3 of 10" in text and "100%" in text
    assert "\x1b[31m" not in text


def test_a_bar_is_drawn_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SimpleNamespace(config={"IPKernelApp": {}}, kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: kernel))
    assert "100%" in shown(monkeypatch, io.StringIO())


def test_no_bar_is_drawn_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO()) == ""
