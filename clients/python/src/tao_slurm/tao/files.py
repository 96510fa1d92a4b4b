"""Files on the cluster. The API has no call for them: a path is checked by a validation, and directories are listed by a small job."""

from __future__ import annotations

import base64
import binascii
import logging
import shlex
from collections.abc import Mapping
from typing import Any

from tao_slurm import Client, TaoSlurmError, WaitTimeout, models
from tao_slurm._text import one_line
from tao_slurm.tao.request import cluster_path

LOG = logging.getLogger("tao_slurm")
CHECKPOINTS = (".pth", ".pth.tar", ".tlt", ".hdf5", ".pt", ".ckpt", ".engine", ".onnx", ".trt", ".safetensors")
LABEL = {"tao-sdk": "listing"}
# The listing is one word in the job's log. `find` may fail at a directory that is not readable; the rest is listed.
LIST = """path={path}
list() {{
    [ ! -e "$path" ] || find "$path/" -mindepth 1 {tests} -printf '%T@ %P\\0' || true
}}
echo "TAO_FILES=.$(list | base64 -w 0)"
"""


class ClusterFiles:
    """The files of one cluster, the default one without a name."""

    def __init__(self, client: Client, place: Mapping[str, Any], timeout: float) -> None:
        self._client = client
        self._place = place
        self._timeout = timeout

    def exists(self, remote: str) -> bool:
        path = path_of(remote)
        view = self._client.validate("true", live=True, inputs=[path], gpus=0, cpus=1, **self._place)
        # The path is all that this job requires, in the service's spelling.
        if not view.job.required_paths:
            raise TaoSlurmError(f"the service does not check {path}: it is local to the nodes of {view.job.cluster}")
        if view.live is None or view.live.unknown_paths:
            raise TaoSlurmError(f"the file system of {view.job.cluster} did not answer in time for {path}")
        return not view.live.missing_paths

    def names(self, remote: str) -> list[str]:
        """What is in a directory, sorted; empty if it does not exist."""
        return sorted(name for _, name in self._list(path_of(remote), "-maxdepth 1"))

    def checkpoints(self, remote: str) -> list[str]:
        """The checkpoints below a directory, the newest one last."""
        path = path_of(remote)
        # Models that a job has fetched are no results of its own.
        tests = r"\( -name inputs -o -name ptm \) -prune -o -xtype f \( " + " -o ".join(f"-iname '*{end}'" for end in CHECKPOINTS) + r" \)"
        return [f"{path.rstrip('/')}/{name}" for _, name in sorted(self._list(path, tests))]

    def _list(self, path: str, tests: str) -> list[tuple[float, str]]:
        job = self._client.submit(
            LIST.format(path=shlex.quote(path), tests=tests),
            name=one_line(f"list {path}", 200),
            gpus=0,
            nodes=1,
            cpus=1,
            time="10m",
            labels=LABEL,
            results=[{"name": "files", "regex": r"^TAO_FILES=\.(\S*)", "required": True}],
            **self._place,
        )
        try:
            found = job.result(self._timeout)["files"]
        except WaitTimeout:
            job.cancel()
            raise WaitTimeout(f"the job {job.id}, which lists {path}, has not ended in {self._timeout:g} s and was canceled") from None
        try:
            job.delete(artifacts=True)
        except TaoSlurmError as error:
            LOG.warning("the job %s, which listed files, was not deleted: %s", job.id, error)
        return entries(str(found))


def path_of(remote: str) -> str:
    path = cluster_path(remote)
    if path is None:
        raise ValueError(f"{one_line(remote, 200)!r} is not a path of the cluster: lustre:///path, slurm:///path or /path")
    return path


def entries(encoded: str) -> list[tuple[float, str]]:
    """Time and path of each file of a listing."""
    try:
        records = base64.b64decode(encoded, validate=True).decode(errors="surrogateescape").split("\0")
        found = [record.partition(" ") for record in records if record]
        return [(float(time), name) for time, _, name in found]
    except (binascii.Error, ValueError):
        raise TaoSlurmError("the listing is damaged") from None


def cluster_view(client: Client, name: str | None) -> models.ClusterView:
    """The cluster with this name, or the default one."""
    if name is not None:
        return client.cluster(name)
    clusters = client.clusters()
    if not clusters:
        raise TaoSlurmError("the service has no cluster")
    return next((cluster for cluster in clusters if cluster.is_default), clusters[0])
