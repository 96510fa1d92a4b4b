"""Submits 250 jobs by threads and 250 by tasks, and follows one job meanwhile. Address and token are in the environment.

The jobs wait for the failure of the followed one, so they never run. Standard output has a line for the followed job, for each submitted one, and for each
request that was sent again.
"""

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TypedDict

from tao_slurm import AsyncClient, Client, Job

HALF, AT_ONCE = 250, 8
HELD = 'n=0; until [ -e "$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID/go" ]; do n=$((n + 1)); echo line $n; sleep 0.2; done; echo last'


class Small(TypedDict):
    gpus: int
    cpus: int
    time: str


SMALL: Small = {"gpus": 0, "cpus": 1, "time": "20m"}
LOCK = threading.Lock()


def say(*words: object) -> None:
    with LOCK:
        print(*words, flush=True)


class Repeats(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say("repeated", record.getMessage())


logging.getLogger("tao_slurm").addHandler(Repeats())
logging.getLogger("tao_slurm").setLevel(logging.INFO)


def follow_lines(job: Job) -> None:
    *lines, last = job.logs(follow=True, stream="out")
    assert last == "last" and lines == [f"line {number}" for number in range(1, len(lines) + 1)], (lines, last)


async def follow_events(job: Job) -> None:
    async with AsyncClient(timeout=2) as client:
        numbers = [event.seq async for event in client.job(job.id).events(follow=True)]
    assert numbers == list(range(1, len(numbers) + 1)), numbers


def await_end(job: Job) -> None:
    assert job.wait().status == "Done"


async def submit_all(needs: list[dict[str, str]]) -> None:
    free = asyncio.Semaphore(AT_ONCE)

    async def submit(client: AsyncClient, name: str) -> None:
        async with free:
            job = await client.submit("true", name=name, needs=needs, **SMALL)
        say("stored", job.id, name)

    async with AsyncClient(timeout=2) as client:
        await asyncio.gather(*(submit(client, f"task-{number}") for number in range(HALF)))


with Client(timeout=2) as client:
    followed = client.submit(HELD, name="followed", **SMALL)
    first = next(iter(followed.logs(follow=True)))
    assert first == "line 1"
    say("followed", followed.id)
    needs: list[dict[str, str]] = [{"job": str(followed.id), "when": "failed"}]

    def submit(number: int) -> None:
        job = client.submit("true", name=f"thread-{number}", needs=needs, **SMALL)
        say("stored", job.id, f"thread-{number}")

    with ThreadPoolExecutor(AT_ONCE + 4) as pool:
        watchers = [pool.submit(follow_lines, followed), pool.submit(await_end, followed)]
        watchers += [pool.submit(asyncio.run, follow_events(followed)), pool.submit(asyncio.run, submit_all(needs))]
        submitted = [pool.submit(submit, number) for number in range(HALF)]
        for future in submitted + watchers[-1:]:
            future.result()
        say("submitted")
        for future in watchers:
            future.result()
say("all done")
