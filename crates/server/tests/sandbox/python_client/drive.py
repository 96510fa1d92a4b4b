"""Runs jobs, a sweep and a pipeline by the synchronous client. Address and token are in the environment.

When all are stored, the standard output has the id of a job. Its log is followed from then on, and it, the sweep and a job of the pipeline go on when
that job's directory has the file `go`.
"""

from typing import TypedDict

from tao_slurm import Client, JobCanceled, JobFailed, PipelineFailed, problems


class Small(TypedDict):
    gpus: int
    cpus: int
    time: str


SMALL: Small = {"gpus": 0, "cpus": 1, "time": "30m"}
LOSS = [{"name": "loss", "regex": r"loss (\S+)"}]
HIDDEN = "hf_hidden"

with Client() as client:
    assert client.me().owner == "python" and [cluster.name for cluster in client.clusters()] == ["sandbox"]

    # All at once: they run while the others are looked at.
    secret = {"HF_TOKEN": HIDDEN}
    held = 'until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do sleep 0.2; done'
    good = client.submit(f"for n in 1 2 3; do echo line $n; done; {held}; echo loss 0.25", name="good", results=LOSS, secret_env=secret, **SMALL)
    too = held.replace("$TAO_API_JOB_ID", str(good.id))
    # A task's results directory is two levels below that of the jobs.
    tasks = too.replace("$TAO_API_RESULTS_DIR", "$TAO_API_RESULTS_DIR/../..")
    bad = client.submit("echo no such file >&2; exit 3", labels={"half": "sync"}, **SMALL)
    stopped = client.submit("sleep 600", **SMALL)
    sweep = client.sweep(f"{tasks}; echo loss $(( a * 10 + b ))", matrix={"a": [1, 2], "b": range(2)}, results=LOSS, **SMALL)
    night = client.pipeline(
        {
            "prep": {"command": f"{too}; echo prepared", **SMALL},
            "train": {"command": "echo trained after $NEEDS_PREP_STATUS", "needs": ["prep"], "results": LOSS, **SMALL},
        },
        name="nightly",
    )
    doomed = client.pipeline({"first": {"command": "exit 1", **SMALL}, "second": {"command": "true", "needs": ["first"], **SMALL}})
    print(good.id, flush=True)

    assert HIDDEN not in repr(good.details()), good.details()
    lines = list(good.logs(follow=True, stream="out"))
    assert lines == ["line 1", "line 2", "line 3", "loss 0.25"], lines
    assert {line.file for line in lines} == {"main.out"}, lines
    seen: list[int] = []
    assert good.result(timeout=600, progress=lambda status: seen.append(status.version))["loss"] == "0.25"
    assert seen == sorted(set(seen)), seen
    assert list(good.logs(tail=1)) == ["loss 0.25"]
    events = list(good.events(follow=True))
    assert [event.seq for event in events] == list(range(1, len(events) + 1)), events
    assert events == list(good.events()) and events[-1].data["status"] == "Done", events
    assert [attempt.number for attempt in good.attempts()] == [1]

    try:
        bad.result()
        raise AssertionError("a failed job has no result")
    except JobFailed as failed:
        assert failed.job == bad and failed.status.status == "Error", failed
    assert bad.diagnosis().attempt == 1
    assert [job.id for job in client.jobs(status="Error", labels={"half": "sync"})] == [bad.id]

    assert stopped.cancel().status in ("Canceling", "Canceled")
    try:
        stopped.result()
        raise AssertionError("a canceled job has no result")
    except JobCanceled:
        pass
    stopped.delete()
    try:
        stopped.status()
        raise AssertionError("a deleted job has no status")
    except problems.JobNotFound as gone:
        assert gone.code == "job_not_found" and gone.status == 404

    found = sweep.result()
    values = [(task.parameters["a"], task.parameters["b"], task["loss"]) for task in found]
    assert values == [(1, 0, "10"), (1, 1, "11"), (2, 0, "20"), (2, 1, "21")], values
    assert [task.status for task in sweep.tasks] == ["done"] * 4

    # One result of the pipeline has no value, and says why.
    results = night.result(timeout=600)
    assert list(results) == ["prep", "train"] and "loss" in results["train"][0].problems, results
    assert list(night["train"].logs()) == ["trained after Done"]
    assert [job.id for job in client.open_pipeline(night.id).jobs.values()] == [job.id for job in night.jobs.values()]
    try:
        doomed.result()
        raise AssertionError("a failed pipeline has no result")
    except PipelineFailed as failed_pipeline:
        assert failed_pipeline.failed == {"first": "Error"}, failed_pipeline
    assert {partition.name for partition in client.partitions("sandbox")} >= {"polar", "cpu"}
print("all done")
