"""The Python client of tao-slurm, the service that runs GPU jobs on Slurm clusters.

.. include:: ../../README.md
   :start-line: 5
"""

from tao_slurm import models, problems
from tao_slurm._async.client import AsyncClient
from tao_slurm._async.job import AsyncJob
from tao_slurm._async.operations import AsyncOperations
from tao_slurm._async.pipeline import AsyncPipeline
from tao_slurm._lines import LogLine
from tao_slurm._sync.client import Client
from tao_slurm._sync.job import Job
from tao_slurm._sync.operations import Operations
from tao_slurm._sync.pipeline import Pipeline
from tao_slurm.arguments import JobArguments, RequestError
from tao_slurm.errors import (
    ApiError,
    BadAnswer,
    JobCanceled,
    JobFailed,
    PipelineFailed,
    SettingsError,
    TaoSlurmError,
    Unreachable,
    WaitTimeout,
)
from tao_slurm.results import Results, TaskResults
from tao_slurm.version import VERSION as __version__

__all__ = [
    "Client",
    "AsyncClient",
    "Job",
    "AsyncJob",
    "Pipeline",
    "AsyncPipeline",
    "Results",
    "TaskResults",
    "LogLine",
    "JobArguments",
    "TaoSlurmError",
    "ApiError",
    "Unreachable",
    "BadAnswer",
    "RequestError",
    "SettingsError",
    "WaitTimeout",
    "JobFailed",
    "JobCanceled",
    "PipelineFailed",
    "Operations",
    "AsyncOperations",
    "models",
    "problems",
    "__version__",
]
