"""The package against the documents that it follows from."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import tao_slurm
from tao_slurm import AsyncClient, AsyncJob, AsyncPipeline, Client, Job, Pipeline, problems

ROOT = Path(__file__).parents[3]


def test_each_problem_code_has_an_exception_with_its_title_and_status() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| ([^|]+?) \|", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    listed = {code: f"{title} ({status})." for code, status, title in rows}
    assert len(listed) > 50
    assert {code: kind.__doc__ for code, kind in problems.BY_CODE.items()} == listed
    assert all(kind.code == code for code, kind in problems.BY_CODE.items())


def public(kind: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("synchronous", "asynchronous"), [(Client, AsyncClient), (Job, AsyncJob), (Pipeline, AsyncPipeline)])
def test_both_halves_have_the_same_names_and_arguments(synchronous: type, asynchronous: type) -> None:
    one, two = public(synchronous), public(asynchronous)
    assert set(one) == {name.replace("aclose", "close") for name in two}
    for name, member in one.items():
        if inspect.isfunction(member):
            other = two["aclose" if name == "close" else name]
            assert list(inspect.signature(member).parameters) == list(inspect.signature(other).parameters), name


def test_the_synchronous_half_has_no_asynchronous_words() -> None:
    for source in (Path(tao_slurm.__file__).parent / "_sync").glob("*.py"):
        found = re.findall(r"\b(?:async|await|asyncio|Async\w+|aclose|a?synchronous half)\b", source.read_text())
        assert not found, (source.name, found)


def test_everything_public_is_documented() -> None:
    for name in tao_slurm.__all__:
        member = getattr(tao_slurm, name)
        assert isinstance(member, str) or (member.__doc__ or "").strip(), name
        for method, function in inspect.getmembers(member, inspect.isfunction):
            if not method.startswith("_") and function.__module__.startswith("tao_slurm"):
                assert (function.__doc__ or "").strip(), f"{name}.{method}"


def test_the_version_is_that_of_the_service() -> None:
    workspace = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert workspace and tao_slurm.__version__ == workspace[1]
