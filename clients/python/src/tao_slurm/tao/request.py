"""What a job of the SDK becomes in a request to the service."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tao_sdk.script_runner import build_entrypoint

CREDENTIALS = {
    "ACCESS_KEY": "AWS_ACCESS_KEY_ID",
    "SECRET_KEY": "AWS_SECRET_ACCESS_KEY",
    "S3_ENDPOINT_URL": "AWS_ENDPOINT_URL",
    "HF_TOKEN": "HF_TOKEN",
    "NGC_KEY": "NGC_KEY",
}
"""Variables of the caller, and the names that the SDK's programs in the container read."""
CLUSTER_SCHEMES = ("lustre://", "slurm://")


def environment(given: Mapping[str, Any] | None, job_id: str, results_root: str) -> tuple[dict[str, str], dict[str, str]]:
    """The open variables of a job and its secret ones."""
    variables = {name: str(value) for name, value in (given or {}).items() if value is not None}
    secrets = {name: os.environ[source] for source, name in CREDENTIALS.items() if os.environ.get(source)}
    secrets |= {name: variables.pop(name) for name in CREDENTIALS.values() if name in variables}
    # The SDK's programs write below these.
    variables |= {"TAO_JOB_ID": job_id, "TAO_RESULTS_ROOT": results_root}
    return variables, secrets


def cluster_path(text: str) -> str | None:
    """The path on the cluster, if the text names one."""
    for scheme in CLUSTER_SCHEMES:
        if text.startswith(scheme):
            return "/" + text.removeprefix(scheme).lstrip("/")
    return text if text.startswith("/") else None


def mount(given: str | Mapping[str, Any]) -> str:
    """A mount as the service takes it: `/path:/inside:ro`."""
    if isinstance(given, str):
        return given
    unknown = set(given) - {"host_path", "container_path", "read_only"}
    if unknown or "host_path" not in given or "container_path" not in given:
        raise ValueError("a mount is a text, or an object with host_path, container_path and maybe read_only")
    return f"{given['host_path']}:{given['container_path']}" + (":ro" if given.get("read_only") else "")


class Files:
    """The inputs and outputs of a job: paths of the cluster are mounted, others are fetched by the SDK's program in the container."""

    def __init__(self, inputs: Mapping[str, str] | None, outputs: Sequence[str] | None, results: str) -> None:
        self.required: list[str] = []
        """Paths that must exist on the cluster."""
        self.mounts: list[str] = []
        self._fetched: dict[str, str] = {}
        for inside, source in (inputs or {}).items():
            path = cluster_path(source)
            if path is None:
                self._fetched[inside] = source
            else:
                self.required.append(path)
                self.mounts.append(f"{path}:{inside}:ro")
        self.mounts += [f"{results}:{inside.rstrip('/') or '/'}" for inside in outputs or ()]

    def command(self, command: str) -> str:
        """The command as it is, or after the inputs are fetched."""
        if not self._fetched:
            return command
        wrapped: str = build_entrypoint(command=command, inputs=self._fetched, outputs=[])["command"]
        return wrapped
