"""The results of a job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from tao_slurm.models import ResultView, TaskView

__all__ = ["Results", "TaskResults"]


class TaskResults(Mapping[str, Any]):
    """The values of one task by their names. A result without a value is in `problems` instead."""

    def __init__(self, task: int, found: Sequence[ResultView], parameters: Mapping[str, Any]) -> None:
        self.task = task
        """The task's number; 0 for a job without an array."""
        self.parameters: Mapping[str, Any] = parameters
        """The parameters of the task; empty for a job without an array."""
        self.problems: Mapping[str, str] = {view.name: view.problem for view in found if view.problem is not None}
        """Why a result has no value, by its name."""
        self._values = {view.name: view.value for view in found if view.problem is None}

    def __getitem__(self, name: str) -> Any:
        if name in self.problems:
            raise KeyError(f"{name}: {self.problems[name]}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"TaskResults(task={self.task}, parameters={dict(self.parameters)!r}, values={self._values!r})"


class Results(Sequence[TaskResults]):
    """The results of all tasks, in the order of their numbers. A job without an array has one task.

    `results["loss"]` is a value of the only task; of a job with an array, `results[2]["loss"]` is one of its third task.
    """

    def __init__(self, found: Sequence[ResultView], tasks: Sequence[TaskView]) -> None:
        by_task: dict[int, list[ResultView]] = {task.task: [] for task in tasks} or {0: []}
        for view in found:
            by_task.setdefault(view.task, []).append(view)
        parameters = {task.task: task.parameters for task in tasks}
        self._tasks = [TaskResults(task, by_task[task], parameters.get(task, {})) for task in sorted(by_task)]

    @overload
    def __getitem__(self, key: int) -> TaskResults: ...
    @overload
    def __getitem__(self, key: slice) -> list[TaskResults]: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if not isinstance(key, str):
            return self._tasks[key]
        if len(self._tasks) != 1:
            raise KeyError(f"{key}: the job has {len(self._tasks)} tasks; results[0][{key!r}] is the value of the first")
        return self._tasks[0][key]

    def __len__(self) -> int:
        return len(self._tasks)

    def __repr__(self) -> str:
        return f"Results({self._tasks!r})"
