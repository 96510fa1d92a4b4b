"""The bar that shows a job or a pipeline in a terminal or in a notebook."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from tao_slurm._text import one_line
from tao_slurm.models import PipelineView, StatusView

__all__ = ["Progress"]

Progress = bool | Callable[[Any], object]
"""`True` shows a bar in a terminal or a notebook, and nothing elsewhere. A function is called with each new status."""


def state(status: StatusView | PipelineView) -> tuple[float, float, str]:
    """How much is done, of how much, and a text."""
    if isinstance(status, PipelineView):
        ended = sum(job.finished_on is not None for job in status.jobs)
        return ended, len(status.jobs), one_line(f"{status.name or 'pipeline'}: {status.status}", 60)
    text = one_line(f"{status.name or status.id}: {status.status}", 60)
    if status.tasks is not None:
        return status.tasks.done + status.tasks.error + status.tasks.canceled, status.tasks.total, text
    if status.status == "Done":
        return 100, 100, text
    return status.progress.percent or 0, 100, text


class Bar:
    """Shows each state. It is closed at the end."""

    def __init__(self, progress: Progress) -> None:
        self._call = progress if callable(progress) else None
        self._bar = open_bar() if progress is True else None

    def show(self, status: StatusView | PipelineView) -> None:
        if self._call is not None:
            self._call(status)
        if self._bar is not None:
            done, total, text = state(status)
            self._bar.total = total
            self._bar.n = done
            self._bar.set_description_str(text, refresh=False)
            message = status.message if isinstance(status, StatusView) else ""
            self._bar.set_postfix_str(one_line(message, 80), refresh=False)
            self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", {})


def open_bar() -> Any:
    with warnings.catch_warnings():
        # Without the widgets of a notebook tqdm warns and draws a text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        # The output of a notebook is no terminal.
        disable = False if is_notebook() else None
        layout = "{desc} {percentage:3.0f}% |{bar:20}| {n:g}/{total:g} [{elapsed}] {postfix}"
        return tqdm(total=100, disable=disable, bar_format=layout, leave=True)
