"""The published packages `nvidia-tao-sdk` and `nvidia-tao-automl`: each of their calls of an SDK object fits ours."""

from __future__ import annotations

import ast
import inspect
import json
import queue
import threading
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake import ID, problem, status
from routed import Routed
from tao_sdk.action_workflow import ActionWorkflow
from tao_sdk.models import Job
from tao_sdk.monitor import JobMonitor
from tao_sdk.platforms.protocol import ArtifactCleanupSDK, PlatformSDK
from tao_sdk.platforms.slurm.sdk import SlurmSDK
from tao_slurm.tao import JobHandler, TaoSlurmSDK
from test_tao import DIAGNOSIS

NOT_OURS = {
    # Scripts in a virtual environment of this machine.
    "create_python_job",
    # Optional: the runner then reads `get_job_metrics` by its `eval_fn`, or the logs.
    "read_job_result_file",
}
# Names of SDK objects and handlers in the sources of the packages.
SDK = {"sdk", "self._sdk", "type(sdk)", "type(self._sdk)"}
HANDLER = {"handler", "entry.handler"}


def sources() -> Iterator[Path]:
    """The modules that call an SDK object of any platform."""
    for package in ("nvidia-tao-sdk", "nvidia-tao-automl"):
        for file in files(package) or ():
            if file.suffix == ".py" and not {"platforms", "tests", "config"} & set(file.parts):
                yield Path(str(file.locate()))


def calls(objects: set[str]) -> Iterator[tuple[str, ast.Call | None]]:
    """Each method that is called, or looked up by `getattr` or `hasattr`."""
    for source in sources():
        for node in ast.walk(ast.parse(source.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            if isinstance(called, ast.Attribute) and ast.unparse(called.value) in objects:
                yield called.attr, node
            elif ast.unparse(called) in ("getattr", "hasattr") and ast.unparse(node.args[0]) in objects:
                name = ast.literal_eval(node.args[1])
                if not name.startswith("_"):
                    yield name, None


@pytest.mark.parametrize(("objects", "ours"), [(SDK, TaoSlurmSDK), (HANDLER, JobHandler)])
def test_each_call_of_the_published_packages_fits(objects: set[str], ours: type) -> None:
    found = [(name, call) for name, call in calls(objects) if name not in NOT_OURS]
    for name, call in found:
        signature = inspect.signature(getattr(ours, name))
        if call is not None:
            named = {word.arg: None for word in call.keywords if word.arg is not None}
            signature.bind(None, *call.args, **named)
    expected = {
        TaoSlurmSDK: {
            "create_job", "get_job_status", "get_job_logs", "iter_job_log_chunks", "cancel_job", "get_failure_analysis", "get_job_results_dir",
            "get_checkpoints", "delete_job_artifacts", "validate_artifact_retention",
        },
        JobHandler: {"get_tao_job_status", "normalize_status", "get_job_logs"},
    }
    assert {name for name, _ in found} == expected[ours]


def test_what_the_packages_may_call_and_we_do_not_have_is_called() -> None:
    assert NOT_OURS <= {name for name, _ in calls(SDK)}


@pytest.mark.parametrize("theirs", [PlatformSDK, ArtifactCleanupSDK, SlurmSDK])
def test_each_public_method_of_the_protocols_and_of_the_stock_sdk_takes_the_same_arguments(theirs: type) -> None:
    for name, method in inspect.getmembers(theirs, inspect.isfunction):
        if name.startswith("_"):
            continue
        ours = inspect.signature(getattr(TaoSlurmSDK, name)).parameters
        for parameter in inspect.signature(method).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                assert any(each.kind is each.VAR_KEYWORD for each in ours.values()), name
            else:
                assert parameter.name in ours, (name, parameter.name)
                assert ours[parameter.name].default == parameter.default, (name, parameter.name)


def test_a_job_is_created_with_the_positions_of_the_protocol() -> None:
    names = list(inspect.signature(PlatformSDK.create_job).parameters)[:-1]
    assert list(inspect.signature(TaoSlurmSDK.create_job).parameters)[: len(names)] == names


def test_a_monitor_calls_the_hooks_of_a_job_once(tmp_path: Path) -> None:
    replies: list[Any] = [status(), problem("overloaded", 503), status("Done", "ended"), status("Done", "ended")]
    service = Routed({("GET", "/status"): lambda _: replies.pop(0) if len(replies) > 1 else replies[0]})
    done: queue.Queue[str] = queue.Queue()
    sdk = service.sdk(poll_interval=0.01, state_file=tmp_path / "state.json")
    made = sdk.create_job("i", "c", hooks={"on_complete": lambda job: done.put(job.id)})
    assert done.get(timeout=60) == made.id and done.empty()
    assert "active_jobs" in json.loads((tmp_path / "state.json").read_text())


def test_a_monitor_of_one_s_own_takes_the_handler() -> None:
    monitor = JobMonitor(poll_interval=0, epoch_milestone_interval=10, state_file="/dev/null")
    epochs: list[int] = []
    replies: list[Any] = [status(), status(), status("Error", "ended")]
    service = Routed({("GET", "/status"): lambda _: replies.pop(0), ("GET", "/logs"): httpx.Response(200, text="Epoch 10/20\n")})
    job = Job(id=ID, network_arch="", action="", workspace_id="slurm")
    failed = threading.Event()
    hooks = {"on_epoch_milestone": lambda _, epoch, most: epochs.append(epoch), "on_error": lambda _: failed.set()}
    monitor.watch(job, hooks, service.sdk().handler)
    monitor.start()
    assert failed.wait(30) and epochs == [10]
    monitor.stop()


def test_a_handler_says_that_a_job_is_complete_by_none() -> None:
    handler = Routed({("GET", "/status"): status("Done", "ended")}).sdk().handler
    assert handler.get_tao_job_status(ID) is None and handler.normalize_status(None) == "Complete"
    assert handler.get_job_message(ID) == "it runs"


def test_a_workflow_folder_has_the_status_and_the_cause(tmp_path: Path) -> None:
    service = Routed({
        ("GET", "/status"): status("Error", "ended"), ("GET", "/logs"): httpx.Response(200, text="bad\n"), ("GET", "/diagnosis"): DIAGNOSIS,
    })
    workflow = ActionWorkflow(tmp_path, "train", "now")
    assert workflow.sync_from_sdk(service.sdk(), ID).status == "Error"
    assert json.loads(workflow.failure_analysis_path.read_text())["reason"] == "cuda-out-of-memory"
    assert workflow.logs_path.read_text() == "bad\n" and json.loads(workflow.active_jobs_path.read_text()) == []
