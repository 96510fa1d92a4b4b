"""The arguments of `submit`, `sweep` and the jobs of a pipeline, and the requests that they become."""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Protocol
from uuid import UUID

from pydantic import ValidationError
from typing_extensions import TypedDict

from tao_slurm import models
from tao_slurm._text import one_line
from tao_slurm.errors import TaoSlurmError

__all__ = ["JobArguments", "RequestError", "hours", "job_request"]


class HasId(Protocol):
    """A job that was submitted."""

    @property
    def id(self) -> UUID: ...


class RequestError(TaoSlurmError, ValueError):
    """A request has an unknown field, or a value of another type. Nothing was sent."""


class JobArguments(TypedDict, total=False):
    """What a job may say beside its command. `spec=` of a call takes every other field of the service's `JobRequest`."""

    name: str
    """A display name."""
    labels: Mapping[str, str]
    """Labels, for display and for filters."""
    image: str
    """The container image. A command without one runs on the node itself."""
    gpus: int
    """GPUs on each node; 0 for none. Default: the cluster's setting."""
    nodes: int
    """The number of nodes."""
    time: float | str | timedelta
    """The time limit: hours, a `timedelta`, or a text such as `"90m"`, `"4h"`, `"2d"`, `"01:30:00"` or `"1-12:00:00"`."""
    cpus: int
    """CPUs of each task."""
    memory: str | Mapping[str, str]
    """The memory of each node, such as `"64G"`; or an object with one of `per_node`, `per_cpu` and `per_gpu`."""
    gpu_type: str
    """The type of the GPUs, as the site names it."""
    cluster: str
    """The cluster to run on. Default: the service's first one."""
    partition: str | Sequence[str]
    """The partitions that the job may run in."""
    account: str
    """The Slurm account to charge."""
    qos: str
    """The quality of service."""
    begin: str
    """The earliest start, such as `"now+2hours"` or `"2026-12-01T08:00:00Z"`."""
    env: Mapping[str, str]
    """Environment variables."""
    secret_env: Mapping[str, str]
    """Secret environment variables. The service encrypts them and never returns them."""
    inputs: Sequence[str]
    """Paths that must exist on the cluster's shared file system before the job is staged."""
    setup: Sequence[str]
    """Lines for bash that run before the program of each task."""
    files: Mapping[str, Any]
    """Files to stage with the job below `$TAO_JOB_FILES`: a text, bytes, or an object with `text`, `json` or `base64`."""
    workdir: str
    """The directory that the program starts in."""
    launcher: str | Mapping[str, Any] | models.LauncherSettings
    """How the command becomes processes, such as `"torchrun"`."""
    results: Sequence[Mapping[str, Any] | models.ResultRequest]
    """What is read of each task when it has ended: a `name`, and one of `json_file`, `json_line` and `regex`."""
    needs: Sequence[str | UUID | HasId | Mapping[str, Any] | models.NeedRequest]
    """Jobs that must have succeeded first: ids, jobs, names in the same pipeline, or objects with `job` and `when`."""
    steps: Sequence[Mapping[str, Any] | models.ComponentRequest]
    """Programs in the place of a command, one after the other."""
    services: Sequence[Mapping[str, Any] | models.ComponentRequest]
    """Programs beside the steps."""
    restart: Mapping[str, Any] | models.RestartRequest
    """When the job goes on after an attempt that did not succeed."""


RESOURCES = {"gpus": "gpus_per_node", "nodes": "num_nodes", "cpus": "cpus_per_task", "memory": "memory", "gpu_type": "gpu_type"}
DETAILS = {"cluster": "cluster_name", "account": "account", "qos": "qos", "begin": "begin"}
RENAMED = {"env": "docker_env_vars", "secret_env": "secret_env_vars"}
Spec = Mapping[str, Any] | models.JobRequest


def job_request(
    command: str | Sequence[str] | None, spec: Spec | None, arguments: Mapping[str, Any], more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The body of a request. Arguments override the fields of `spec`; their names and types are checked, their values are not."""
    body = fields_of(spec)
    unknown = set(arguments) - set(JobArguments.__annotations__)
    if unknown:
        name = sorted(unknown)[0]
        raise RequestError(f"there is no argument {name!r}{suggestion(name, JobArguments.__annotations__)}; `spec=` takes all fields")
    if command is not None:
        body["command"] = command if isinstance(command, str) else shlex.join(command)
    resources = {RESOURCES[name]: value for name, value in arguments.items() if name in RESOURCES}
    if "time" in arguments:
        resources["time_hours"] = hours(arguments["time"])
    details = {DETAILS[name]: value for name, value in arguments.items() if name in DETAILS}
    if "partition" in arguments:
        partition = arguments["partition"]
        details["partition"] = partition if isinstance(partition, str) else ",".join(partition)
    for field, values in (("resources", resources), ("backend_details", details)):
        if values:
            body[field] = {**fields_of(body.get(field)), **values}
    taken = {*RESOURCES, *DETAILS, "time", "partition"}
    body |= {RENAMED.get(name, name): value for name, value in arguments.items() if name not in taken}
    if "needs" in arguments:
        body["needs"] = [need(each) for each in arguments["needs"]]
    if "files" in arguments:
        body["files"] = {path: file(content) for path, content in arguments["files"].items()}
    body |= more or {}
    return check(body, models.JobRequest)


def check(body: dict[str, Any], model: type[models.JobRequest] | type[models.PipelineRequest]) -> dict[str, Any]:
    """The body, if the model has its fields."""
    try:
        model.model_validate(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestError("; ".join(fault_text(fault) for fault in faults[:5])) from None
    return body


def fault_text(fault: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        name = str(fault["loc"][-1])
        known = {field for each in vars(models).values() if hasattr(each, "model_fields") for field in each.model_fields}
        return f"there is no field {place}{suggestion(name, models.JobRequest.model_fields if len(fault['loc']) == 1 else known)}"
    return f"{place}: {one_line(str(fault['msg']), 200)}"


def suggestion(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def fields_of(value: Any) -> dict[str, Any]:
    """The fields that were given, of an object or of a model."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return dict(value)
    fields: dict[str, Any] = {name: getattr(value, name) for name in value.model_fields_set}
    return fields


def need(value: Any) -> Any:
    if isinstance(value, (str, UUID)):
        return {"job": str(value)}
    identity = getattr(value, "id", None)
    return {"job": str(identity)} if isinstance(identity, UUID) else value


def file(content: Any) -> Any:
    if isinstance(content, str):
        return {"text": content}
    if isinstance(content, bytes):
        return {"base64": base64.b64encode(content).decode()}
    return content


UNITS = {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}
SLURM_TIME = re.compile(r"(?:(\d{1,6})-)?(\d{1,6}):(\d{1,2})(?::(\d{1,2}))?")


def hours(time: float | str | timedelta) -> float:
    """A time limit in hours."""
    if isinstance(time, timedelta):
        return time.total_seconds() / 3600
    if not isinstance(time, str):
        return time
    if match := re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([smhd])", time.strip()):
        return float(match[1]) * UNITS[match[2]]
    if match := SLURM_TIME.fullmatch(time.strip()):
        days, first, second, third = (int(part or 0) for part in match.groups())
        # Slurm reads "1-12:30" as hours and minutes, and "90:00" as minutes and seconds.
        if match[1] is None and match[4] is None:
            return first / 60 + second / 3600
        return days * 24 + first + second / 60 + third / 3600
    raise RequestError(f"the time {one_line(time, 50)!r} is not like '90m', '4h', '01:30:00' or '1-12:00:00'")


def pipeline_request(
    jobs: Mapping[str, Mapping[str, Any] | models.JobRequest], name: str | None, labels: Mapping[str, str] | None
) -> dict[str, Any]:
    """The body of a pipeline."""
    named: dict[str, Any] = {}
    for key, job in jobs.items():
        try:
            named[key] = pipeline_job(job)
        except RequestError as error:
            raise RequestError(f"job {one_line(key, 100)!r}: {error}") from None
    body = {"name": name, "labels": labels, "jobs": named}
    return {field: value for field, value in body.items() if value is not None}


def pipeline_job(job: Mapping[str, Any] | models.JobRequest) -> dict[str, Any]:
    """An object has arguments, or fields of a request; an argument is meant where both have the name."""
    if isinstance(job, models.JobRequest):
        return job_request(None, job, {})
    given = {name: value for name, value in job.items() if name in JobArguments.__annotations__}
    rest = {name: value for name, value in job.items() if name not in given and name not in ("command", "spec")}
    return job_request(job.get("command"), {**fields_of(job.get("spec")), **rest}, given)
