"""The SDK object for TAO: what it sends, and the SDK's words for what the service answers."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from example import example
from fake import ID, answer, event, problem, status, stream
from routed import BASE, Routed, details
from tao_slurm import ApiError, RequestError, TaoSlurmError, Unreachable
from tao_slurm.tao import TaoSlurmSDK
from tao_slurm.tao.files import entries
from test_streams import piece

@pytest.fixture(autouse=True)
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials of the person who runs the tests."""
    for name in ("ACCESS_KEY", "SECRET_KEY", "S3_ENDPOINT_URL", "HF_TOKEN", "NGC_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_a_job_has_an_id_of_ours_and_the_variables_that_the_sdk_s_programs_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_hidden")
    monkeypatch.setenv("SECRET_KEY", "s3_hidden")
    service = Routed()
    made = service.sdk(account="vision").create_job(
        "nvcr.io/nvidia/tao:1", "train", 4, {"SEED": 7, "UNSET": None, "NGC_KEY": "ngc_hidden"}, num_nodes=2, partition="polar", time="2h", labels={"team": "a"}
    )
    sent = service.submitted()
    assert sent["id"] == made.id == str(uuid.UUID(made.id)) and service.requests[-1].headers["idempotency-key"] == made.id
    assert sent["docker_env_vars"] == {"SEED": "7", "TAO_JOB_ID": made.id, "TAO_RESULTS_ROOT": f"{BASE}/results"}
    assert sent["secret_env_vars"] == {"HF_TOKEN": "hf_hidden", "AWS_SECRET_ACCESS_KEY": "s3_hidden", "NGC_KEY": "ngc_hidden"}
    assert sent["command"] == "train" and sent["image"] == "nvcr.io/nvidia/tao:1" and "container" not in sent
    assert sent["resources"] == {"gpus_per_node": 4, "num_nodes": 2, "time_hours": 2}
    assert sent["backend_details"] == {"partition": "polar", "account": "vision"} and sent["labels"] == {"team": "a", "tao-sdk": "job"}
    assert made.results_dir == f"lustre://{BASE}/results/{made.id}" and (made.status, made.backend_type) == ("Pending", "slurm")


def test_mounts_come_beside_those_of_the_cluster() -> None:
    service = Routed()
    service.sdk().create_job("i", "c", mounts=["/a:/b:ro", {"host_path": "/c", "container_path": "/d", "read_only": True}])
    assert service.submitted()["container"]["mounts"] == ["/lustre", "/a:/b:ro", "/c:/d:ro"]
    service.sdk().create_job("i", "c", mounts=["/a:/b"], spec={"container": {"mounts": ["/own"], "mount_home": True}})
    assert service.submitted()["container"] == {"mounts": ["/own", "/a:/b"], "mount_home": True}
    with pytest.raises(ValueError, match="need an image"):
        service.sdk().create_job("", "c", mounts=["/a:/b"])
    with pytest.raises(ValueError, match="host_path"):
        service.sdk().create_job("i", "c", mounts=[{"host": "/c"}])


def test_inputs_of_the_cluster_are_mounted_and_others_are_fetched_in_the_container() -> None:
    service = Routed()
    made = service.sdk().create_job(
        "i", "my command", inputs={"/data/a": "lustre:///lustre/a", "/data/b": "s3://bucket/b"}, outputs=["/results/"]
    )
    sent = service.submitted()
    assert sent["inputs"] == ["/lustre/a"]
    assert sent["container"]["mounts"] == ["/lustre", "/lustre/a:/data/a:ro", f"{BASE}/results/{made.id}:/results"]
    assert "my command" in sent["command"] and "s3://bucket/b" in sent["command"] and "/lustre/a" not in sent["command"]
    service.sdk().create_job("i", "my command", inputs={"/data/a": "/lustre/a"})
    assert service.submitted()["command"] == "my command"


def test_an_argument_that_create_job_does_not_take_is_refused_before_anything_is_sent() -> None:
    service = Routed({("GET", "/me"): {"owner": "me", "scopes": ["read", "write"], "authentication": "token"}})
    refused: list[tuple[dict[str, Any], str]] = [({"dedicated_node_group": "a"}, "dedicated_node_group"), ({"gpus": 1}, "use 'gpu_count'")]
    for wrong, why in refused:
        with pytest.raises(TypeError, match=why):
            service.sdk().create_job("i", "c", **wrong)
        with pytest.raises(TypeError, match=why):
            service.sdk().validate_artifact_retention(**wrong)
    assert service.requests == []
    with pytest.raises(RequestError, match="num_gpuz") as raised:
        service.sdk().create_job("i", "c", spec={"num_gpuz": 1})
    assert not hasattr(raised.value, "tao_job_id") and {request.method for request in service.requests} == {"GET"}
    assert service.sdk().validate_artifact_retention(gpu_count=1, mounts=[], time="1h") is True
    service.routes["GET", "/me"] = {"owner": "me", "scopes": ["read"], "authentication": "token"}
    with pytest.raises(PermissionError, match="write"):
        service.sdk().validate_artifact_retention()


def test_a_submission_whose_answer_is_lost_has_its_id_and_a_refused_one_has_none() -> None:
    replies: list[Any] = [httpx.ReadError("reset"), problem("unauthorized", 401)]
    lost: list[tuple[Any, bool]] = [
        (httpx.ReadError("reset"), True),
        (KeyboardInterrupt(), True),
        (problem("internal", 500), True),
        (problem("validation", 422), False),
        # The first try may have been stored.
        (lambda _: replies.pop(0), True),
    ]
    for reply, kept in lost:
        service = Routed({("POST", "/jobs"): reply if callable(reply) else raising(reply)})
        with pytest.raises(BaseException) as raised:
            service.sdk().create_job("i", "c")
        assert hasattr(raised.value, "tao_job_id") is kept, reply
        if kept:
            assert getattr(raised.value, "tao_job_id") == service.submitted()["id"]


def raising(reply: Any) -> Callable[[httpx.Request], Any]:
    def give(_: httpx.Request) -> Any:
        if isinstance(reply, BaseException):
            raise reply
        return reply

    return give


WORDS = {
    "Pending": "Pending", "Started": "Running", "Running": "Running", "Pausing": "Running", "Paused": "Paused", "Resuming": "Pending",
    "Canceling": "Canceling", "Done": "Complete", "Error": "Error", "Canceled": "Canceled", "Hibernating": "Running",
}


@pytest.mark.parametrize("theirs", WORDS)
def test_each_word_of_the_service_is_one_of_the_sdk(theirs: str) -> None:
    found = Routed({("GET", "/status"): status(theirs, stale=True)}).sdk().get_job_status(ID)
    assert (found.status, found.message, found.job_id) == (WORDS[theirs], "it runs", ID)


def test_only_a_service_that_answers_says_that_a_job_is_unknown() -> None:
    assert Routed().sdk().get_job_status(ID).status == "Unknown"
    assert Routed().sdk().get_job_status("no-uuid").status == "Unknown"
    with pytest.raises(Unreachable):
        Routed({("GET", "/status"): httpx.ConnectError("refused")}).sdk().get_job_status(ID)
    with pytest.raises(ApiError):
        Routed({("GET", "/status"): problem("unauthorized", 401)}).sdk().get_job_status(ID)


def test_an_unknown_job_is_none_empty_or_false() -> None:
    sdk = Routed().sdk()
    for id in (ID, "no-uuid", "../x"):
        assert sdk.get_job(id) is None and sdk.get_failure_analysis(id) is None
        assert sdk.get_job_logs(id) == sdk.get_job_results_dir(id) == ""
        assert "".join(sdk.iter_job_log_chunks(id)) == "" and sdk.get_checkpoints(id) == [] and sdk.get_job_metrics(id) == {}
        assert sdk.cancel_job(id) is False and sdk.delete_job_artifacts(id) is False


def test_jobs_are_listed_by_words_of_the_sdk() -> None:
    service = Routed({("GET", "/jobs"): {"jobs": [details("Done", "ended")], "next_page_token": None}})
    found = service.sdk().list_jobs("Running")
    asked = service.requests[-1].url.params
    assert asked.get_list("status") == ["Started", "Running", "Pausing"] and asked["label"] == "tao-sdk:job"
    assert [(each["job_id"], each["status"], each["backend_job_id"]) for each in found] == [(ID, "Complete", "4711")]
    service.sdk().list_jobs()
    assert "status" not in service.requests[-1].url.params
    assert service.sdk().list_jobs("Unknown") == []
    with pytest.raises(ValueError, match="Complete"):
        service.sdk().list_jobs("Done")


def test_a_job_has_its_results_directory_on_its_cluster() -> None:
    sdk = Routed({("GET", ID): details()}).sdk()
    row = sdk.get_job(ID)
    assert row and row["results_dir"] == sdk.get_job_results_dir(ID) == f"lustre://{BASE}/results/{ID}"


def test_logs_are_the_newest_attempt_s_and_empty_before_there_are_any() -> None:
    service = Routed({("GET", "/logs"): httpx.Response(200, text="one\ntwo\n")})
    assert service.sdk().get_job_logs(ID, tail=20) == "one\ntwo\n"
    assert service.sdk().get_job_logs(ID, 0) and service.sdk().get_job_logs(ID)
    assert [request.url.params["tail"] for request in service.requests] == ["20", "1", "10000"]
    assert Routed({("GET", "/logs"): problem("no_log_yet", 404)}).sdk().get_job_logs(ID) == ""


def test_the_whole_log_of_an_ended_job_comes_in_parts_of_its_newest_attempt() -> None:
    def log(_: httpx.Request) -> httpx.Response:
        pieces = [piece(7 * n, f"line {n}\n", attempt=2) for n in range(5)]
        return stream(*pieces, event("end", {}))

    service = Routed({("GET", "/status"): status("Done", "ended", attempt=2), ("GET", "/logs"): log})
    parts = list(service.sdk().iter_job_log_chunks(ID, chunk_size=14))
    assert "".join(parts) == "line 0\nline 1\nline 2\nline 3\nline 4\n" and parts[0] == "line 0\nline 1\n"
    assert service.requests[-1].url.params["attempt"] == "2"
    running = Routed({("GET", "/status"): status(), ("GET", "/logs"): httpx.Response(200, text="so far\n")})
    assert list(running.sdk().iter_job_log_chunks(ID)) == ["so far\n"]


def test_a_cancellation_waits_for_the_cluster_and_is_true_for_ended_jobs() -> None:
    views = [status("Canceling"), status("Canceled", "ended")]
    service = Routed({("POST", "/cancel"): answer(status("Canceling"), 202), ("GET", "/status"): lambda _: answer(views.pop(0), etag='"1"')})
    assert service.sdk().cancel_job(ID) is True and views == []
    ended = Routed({("POST", "/cancel"): status("Done", "ended"), ("GET", "/status"): status("Done", "ended")})
    assert ended.sdk().cancel_job(ID) is True
    slow = Routed({("POST", "/cancel"): answer(status("Canceling"), 202), ("GET", "/status"): status("Canceling")})
    assert slow.sdk(cancel_timeout=0.01).cancel_job(ID) is True


DIAGNOSIS = example("DiagnosisView") | {
    "rule": "cuda-out-of-memory", "rank": 3, "first": {"log": "main.err", "offset": 8, "line": "CUDA out of memory"},
}


def test_a_failure_has_its_first_cause() -> None:
    analysis = Routed({("GET", "/diagnosis"): DIAGNOSIS}).sdk().get_failure_analysis(ID)
    assert analysis and (analysis["reason"], analysis["match"], analysis["rank"]) == ("cuda-out-of-memory", "CUDA out of memory", 3)
    assert Routed({("GET", "/diagnosis"): problem("not_failed", 404)}).sdk().get_failure_analysis(ID) is None


def test_metrics_of_the_status_file_are_numbers() -> None:
    service = Routed({("GET", "/status"): status(progress={"metrics": {"val_acc": 0.5, "loss": None, "text": "a"}})})
    assert service.sdk().get_job_metrics(ID) == {"val_acc": 0.5}


def listing(*records: bytes, state: str = "Done") -> Routed:
    found = base64.b64encode(b"".join(record + b"\0" for record in records)).decode()
    results = [{"task": 0, "name": "files", "value": found, "problem": None}]
    ended = status(state, "ended", message="it ended")
    return Routed({
        ("GET", "/results"): results, ("GET", "/status"): ended, ("GET", ID): details(), ("DELETE", ID): httpx.Response(204),
    })


def test_checkpoints_on_the_cluster_are_paths_with_the_newest_last() -> None:
    service = listing(b"30.5 train/model_epoch_002.pth", b"9.0 train/model_epoch_001.pth", "20.0 it's \udcff.ckpt".encode(errors="surrogateescape"))
    root = f"{BASE}/results/{ID}"
    assert service.sdk(listing_partition="cpu").get_checkpoints(ID) == [
        f"{root}/train/model_epoch_001.pth", f"{root}/it's \udcff.ckpt", f"{root}/train/model_epoch_002.pth",
    ]
    sent = service.submitted()
    assert sent["resources"]["gpus_per_node"] == 0 and sent["backend_details"] == {"partition": "cpu"} and sent["labels"] == {"tao-sdk": "listing"}
    assert (service.requests[-1].method, service.requests[-1].url.params["artifacts"]) == ("DELETE", "true")
    assert subprocess.run(["bash", "-n"], input=sent["command"], text=True).returncode == 0


def test_names_of_a_directory_are_sorted_and_its_path_is_quoted() -> None:
    service = listing(b"2.0 b", b"1.0 c d")
    assert service.sdk().list_path("lustre:///lustre/it's $(id)") == ["b", "c d"]
    assert """path='/lustre/it'"'"'s $(id)'""" in service.submitted()["command"]
    assert listing().sdk().list_path("/nowhere") == []
    with pytest.raises(ValueError, match="not a path of the cluster"):
        service.sdk().list_path("s3://bucket/a")


def test_the_command_that_lists_files_lists_them(tmp_path: Any) -> None:
    service = listing()
    service.sdk().get_checkpoints(ID)
    command = service.submitted()["command"].replace(f"{BASE}/results/{ID}", str(tmp_path))
    for name in ("a.pth", "b.PTH", "notes.txt", "inputs/base.pth", "deep/new\nline.ckpt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "best.pth").symlink_to("a.pth")
    (tmp_path / "gone.pth").symlink_to("nowhere")
    def found(text: str) -> set[str]:
        said = subprocess.run(["bash", "-euo", "pipefail", "-c", text], capture_output=True, text=True, check=True).stdout
        return {name for _, name in entries(said.strip().removeprefix("TAO_FILES=."))}

    assert found(command) == {"a.pth", "b.PTH", "best.pth", "deep/new\nline.ckpt"}
    link = tmp_path.parent / "link"
    link.symlink_to(tmp_path)
    assert "a.pth" in found(command.replace(str(tmp_path), str(link)))
    assert found(command.replace(str(tmp_path), f"{tmp_path}/gone")) == set()


def test_a_listing_that_takes_too_long_is_canceled() -> None:
    service = listing(state="Pending")
    service.routes["GET", "/status"] = status("Pending", "in_queue")
    service.routes["POST", "/cancel"] = status("Canceling")
    with pytest.raises(TaoSlurmError, match="was canceled"):
        service.sdk(listing_timeout=0.01).list_path("/a")
    assert service.requests[-1].url.path.endswith("/cancel")


@pytest.mark.parametrize(("missing", "unknown", "exists"), [([], [], True), (["/lustre/a"], [], False), ([], ["/lustre/a"], None)])
def test_a_path_is_checked_by_the_cluster(missing: list[str], unknown: list[str], exists: bool | None) -> None:
    live = {"accepted": False, "sbatch_output": "", "missing_paths": missing, "unknown_paths": unknown}
    view = {"job": details() | {"required_paths": ["/lustre/a"]}, "batch_script": "", "submissions": 1, "warnings": [], "live": live}
    service = Routed({("POST", "/validate"): view})
    if exists is None:
        with pytest.raises(TaoSlurmError, match="did not answer in time"):
            service.sdk().check_path("lustre:///lustre/a/")
    else:
        assert service.sdk().check_path("lustre:///lustre/a/") is exists
    assert service.requests[-1].url.params["live"] == "true"
    service.routes["POST", "/validate"] = view | {"job": details() | {"required_paths": []}}
    with pytest.raises(TaoSlurmError, match="does not check"):
        service.sdk().check_path("/tmp/a")


def test_artifacts_are_deleted_once_and_only_after_the_end() -> None:
    service = Routed({("DELETE", ID): httpx.Response(204)})
    sdk = service.sdk()
    assert sdk.delete_job_artifacts(ID) is True and service.requests[-1].url.params["artifacts"] == "true"
    service.routes.clear()
    # AutoMLRunner repeats a deletion that it could not note.
    assert sdk.delete_job_artifacts(ID) is True and service.sdk().delete_job_artifacts(ID) is False
    assert Routed({("DELETE", ID): problem("wrong_state", 409)}).sdk().delete_job_artifacts(ID) is False
    with pytest.raises(Unreachable):
        Routed({("DELETE", ID): httpx.ConnectError("refused")}).sdk().delete_job_artifacts(ID)


def test_no_text_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_hidden")
    service = Routed({("POST", "/jobs"): problem("validation", 422)})
    with pytest.raises(ApiError) as raised:
        service.sdk().create_job("i", "c")
    assert "hf_hidden" not in f"{raised.value!r}{service.sdk()!r}{vars(service.sdk())}"


def test_the_package_itself_does_not_need_the_sdk() -> None:
    hidden = "import sys; sys.modules['tao_sdk'] = None; import tao_slurm; print('imported')\nimport tao_slurm.tao"
    ran = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert ran.stdout == "imported\n" and "pip install 'tao-slurm[tao]'" in ran.stderr
