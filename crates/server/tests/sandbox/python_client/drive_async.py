"""Runs jobs, a sweep and a pipeline by the asynchronous client, as `drive.py` does. Address and token are in the environment."""

import asyncio
from typing import TypedDict

from tao_slurm import AsyncClient, AsyncJob, JobCanceled, JobFailed


class Small(TypedDict):
    gpus: int
    cpus: int
    time: str


SMALL: Small = {"gpus": 0, "cpus": 1, "time": "30m"}
LOSS = [{"name": "loss", "regex": r"loss (\S+)"}]


async def good(job: AsyncJob) -> None:
    lines = [line async for line in job.logs(follow=True, stream="out")]
    assert lines == ["line 1", "line 2", "loss 0.5"], lines
    assert (await job.result())["loss"] == "0.5"
    numbers = [event.seq async for event in job.events(follow=True)]
    assert numbers == list(range(1, len(numbers) + 1)), numbers


async def failed(job: AsyncJob) -> None:
    try:
        await job.result()
        raise AssertionError("a failed job has no result")
    except JobFailed as failure:
        assert failure.status.status == "Error", failure


async def canceled(job: AsyncJob) -> None:
    await job.cancel()
    try:
        await job.result()
        raise AssertionError("a canceled job has no result")
    except JobCanceled:
        pass


async def sweep(job: AsyncJob) -> None:
    values = [(task.parameters["a"], task["loss"]) for task in await job.result()]
    assert values == [(1, "1"), (2, "4"), (3, "9")], values
    assert [task.status async for task in job.tasks] == ["done"] * 3


async def main() -> None:
    async with AsyncClient() as client:
        held = 'until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do sleep 0.2; done'
        first = await client.submit(f"echo line 1; echo line 2; {held}; echo loss 0.5", results=LOSS, **SMALL)
        too = held.replace("$TAO_API_JOB_ID", str(first.id))
        # A task's results directory is two levels below that of the jobs.
        tasks = too.replace("$TAO_API_RESULTS_DIR", "$TAO_API_RESULTS_DIR/../..")
        squares = await client.sweep(f"{tasks}; echo loss $(( a * a ))", values=[{"a": 1}, {"a": 2}, {"a": 3}], results=LOSS, **SMALL)
        night = await client.pipeline(
            {"a": {"command": f"{too}; echo a", **SMALL}, "b": {"command": "echo loss 7", "needs": ["a"], "results": LOSS, **SMALL}}
        )
        print(first.id, flush=True)
        await asyncio.gather(
            good(first),
            failed(await client.submit("exit 3", **SMALL)),
            canceled(await client.submit("sleep 600", **SMALL)),
            sweep(squares),
        )
        assert (await night.result())["b"]["loss"] == "7"
        assert [line async for line in night["a"].logs()] == ["a"]
    print("all done")


asyncio.run(main())
