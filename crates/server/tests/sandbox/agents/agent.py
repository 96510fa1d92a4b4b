"""An agent that has only the tools: it runs a job, learns why it failed, and runs it with more memory. Address and token are in the environment."""

import asyncio
import os

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

ADDRESS = os.environ["TAO_SLURM_URL"] + "/mcp"
NINE = {
    "submit_job", "get_status", "get_logs", "cancel_job", "retry_job", "explain_job", "list_jobs", "list_partitions", "preflight",
}
SMALL = {"gpus_per_node": 0, "cpus_per_task": 1, "time_hours": 0.1}
# It waits for its end, unless it has enough memory.
HUNGRY = 'echo "memory: $SLURM_MEM_PER_NODE"; [ "$SLURM_MEM_PER_NODE" -ge 1000 ] || sleep 600; echo enough'


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, (tool, result.content)
    return result.structured_content


async def refused(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, (tool, result.content)
    return result.content[0].text


async def until(client, job_id, *statuses):
    """Waits by the tool alone."""
    known = None
    while True:
        seen = await call(client, "get_status", job_id=job_id, wait_seconds=20, **({"known_status": known} if known else {}))
        known = seen["job"]["status"]
        if known in statuses or seen["ended"]:
            assert known in statuses, seen
            return seen["job"]


async def heals(client):
    """From "why did my job fail" to a retry with more memory, to Done."""
    places = await call(client, "list_partitions")
    cluster = places["clusters"]["items"][0]
    assert cluster["partitions"]["items"], places
    job = {"name": "hungry", "command": HUNGRY, "resources": {**SMALL, "memory": "600M"}, "labels": {"made": "by-agent"}}
    checked = await call(client, "submit_job", job=job)
    assert checked["dry_run"] and checked["job"]["resources"]["memory"]["per_node"] == "600M", checked
    key = "hungry-1"
    stored = await call(client, "submit_job", job=job, dry_run=False, idempotency_key=key)
    again = await call(client, "submit_job", job=job, dry_run=False, idempotency_key=key)
    assert again["job_id"] == stored["job_id"] and again["stored_before"] and not stored["stored_before"], (stored, again)

    running = await until(client, stored["job_id"], "Running")
    print("hungry", running["slurm_job_id"], flush=True)
    await until(client, stored["job_id"], "Error")

    why = await call(client, "explain_job", job_id=stored["job_id"])
    assert why["diagnosis"]["category"] == "host_memory", why
    changes = why["suggested_changes"]
    assert changes["resources"]["memory"] == {"per_node": "1200M"}, why
    planned = await call(client, "retry_job", job_id=stored["job_id"], changes=changes, dry_run=True)
    assert planned["new_job"]["job"]["resources"]["memory"]["per_node"] == "1200M", planned
    retried = await call(client, "retry_job", job_id=stored["job_id"], changes=changes)
    twice = await call(client, "retry_job", job_id=stored["job_id"], changes=changes)
    assert retried["job_id"] == twice["job_id"] != stored["job_id"], (retried, twice)
    await until(client, retried["job_id"], "Done")

    log = await call(client, "get_logs", job_id=retried["job_id"], stream="out")
    assert "memory: 1200\nenough\n" in log["text"] and log["complete"], log
    found = await call(client, "get_logs", job_id=retried["job_id"], search="enough")
    assert found["complete"] and len(found["hits"]["items"]) == 1, found
    line = await call(client, "get_logs", job_id=retried["job_id"], stream="out", offset=found["hits"]["items"][0]["offset"])
    assert line["text"] == "enough\n", line
    jobs = await call(client, "list_jobs", label=["made:by-agent"], status=["Done"])
    assert [job["id"] for job in jobs["jobs"]] == [retried["job_id"]], jobs


async def controls(client):
    """The tools that the other course does not call, and refusals."""
    report = await call(client, "preflight")
    assert report["outcome"] in {"pass", "warn"}, report
    job = {"command": "sleep 600", "resources": SMALL, "secret_env_vars": {"HF_TOKEN": "hf_planted"}}
    sleeper = (await call(client, "submit_job", job=job, dry_run=False, idempotency_key="sleeper"))["job_id"]
    text = await refused(client, "retry_job", job_id=sleeper)
    assert text.startswith("wrong_state: "), text
    await until(client, sleeper, "Running")
    await call(client, "cancel_job", job_id=sleeper)
    await until(client, sleeper, "Canceled")
    text = await refused(client, "retry_job", job_id=sleeper)
    assert text.startswith("invalid_request: "), text
    retried = await call(client, "retry_job", job_id=sleeper, secret_env_vars={"HF_TOKEN": "hf_planted"})
    assert not retried["is_new_job"] and retried["job_id"] == sleeper, retried
    await call(client, "cancel_job", job_id=sleeper)
    text = await refused(client, "submit_job", job={"comand": "true"})
    assert text.startswith("invalid_request: "), text
    text = await refused(client, "get_status", job_id="01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a11")
    assert text.startswith("job_not_found: "), text
    return sleeper


async def only_reads(sleeper):
    """A token that may read sees all tools, and changes nothing; one of another owner sees no job."""
    for name, expected in [("READER", "forbidden: "), ("OTHER", "job_not_found: ")]:
        async with connected(os.environ[name]) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == NINE
            text = await refused(client, "cancel_job", job_id=sleeper)
            assert text.startswith(expected), text
    async with connected(os.environ["READER"]) as client:
        await call(client, "get_status", job_id=sleeper)
    async with connected(os.environ["OTHER"]) as client:
        assert (await call(client, "list_jobs"))["jobs"] == []


def connected(token):
    """A client. The address is that of the service, and the token stays with it."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)
    return Client(streamable_http_client(ADDRESS, http_client=http))


async def main():
    try:
        async with connected("tsl_wrong"):
            raise AssertionError("a wrong token got in")
    except* Exception as errors:
        assert not errors.split(AssertionError)[0], errors
    async with connected(os.environ["TAO_SLURM_TOKEN"]) as client:
        assert client.server_info.name == "tao-slurm", client.server_info
        assert {tool.name for tool in (await client.list_tools()).tools} == NINE
        async with asyncio.TaskGroup() as both:
            both.create_task(heals(client))
            sleeper = both.create_task(controls(client))
    await only_reads(sleeper.result())
    print("all done", flush=True)


asyncio.run(main())
