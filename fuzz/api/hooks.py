"""Rules of this API that its OpenAPI document cannot express.

Requests with contradicting fields fit every schema and are still refused. Most requests are completed before they are sent, so
that the checks behind these refusals run too. A refusal of the others is no failure if it names a rule that a schema cannot
express. Everything else is a failure.
"""

import os
import random
import sys

import schemathesis

# Rules about several fields, the server's state, and texts in free documents: docs/errors.md.
BEYOND_SCHEMAS = {
    "contradiction", "reserved", "unknown_cluster", "unknown_partition", "unknown_key", "time_limit", "gpu_limit", "node_limit",
    "memory_limit", "cpu_limit", "gres_limit", "unknown_gpu_type", "unknown_gres", "unknown_feature", "unknown_account", "unknown_qos",
    "impossible_shape", "local_path", "remote_data", "id_conflict", "repeated",
    "unsupported", "unknown_job", "cycle", "invalid_pattern",
}
# The required fields of a job depend on its other fields and, for a retry, on its secrets. Those of a cluster depend on whether
# it is added or changed.
NEEDED = ("/name", "/image", "/action", "/network_arch", "/secret_env_vars/", "/cloud_metadata/", "/resources/memory",
          "/results/", "/array", "/steps", "/components/")
# Texts with a grammar beyond a pattern or a limit in bytes, and numbers that are texts or depend on another number.
BEYOND_PATTERNS = (
    "/image", "/hosts/", "/host_keys/", "/webhook/url", "/backend_details/partition", "/partitions",
    "/connect_timeout", "/poll_min", "/poll_max", "/resources/gpus_per_node", "/specs", "/docker_env_vars/", "/secret_env_vars/",
    "/resources/exclude", "/resources/nodelist", "/exclude", "/nodelist", "/backend_details/begin", "/backend_details/deadline",
    "/resources/constraint", "/constraint", "/files/", "/array", "/results/", "/tasks",
    "/progress/file", "/needs/", "/restart/exit_codes",
    # A time that has passed.
    "/expires_at",
    # Of steps and services.
    "/env/", "/secret_env/", "/node_env/", "/ready", "/balance/image", "/components/",
)
# Problems that depend on earlier requests.
BEYOND_REQUESTS = {"id_conflict", "idempotency_key_reused", "cluster_changed"}
# The cluster of this run does not answer, and on a busy machine the database may be too slow.
AWAY = {"cluster_unavailable", "log_unreadable", "database_unavailable"}

LARGEST_BODY = 10 * 1024 * 1024

# A new job need not have these.
NOT_EVERY_JOB = {"no_webhook", "no_script_yet", "no_log_yet", "attempt_not_found"}

JOBS = os.environ.get("FUZZ_JOBS", "").split()
HOST_KEY = os.environ.get("FUZZ_HOST_KEY", "")


@schemathesis.hook
def before_call(context, case, kwargs):
    """Completes most requests, and asks for existing jobs."""
    if case.meta is None or case.meta.generation.mode.is_negative:
        return
    dice = random.Random(repr((case.path_parameters, case.query, case.headers, case.body)))
    if case.meta.phase.name.value in ("coverage", "fuzzing") and JOBS and "id" in (case.path_parameters or {}):
        if dice.random() < 0.7:
            case.path_parameters["id"] = dice.choice(JOBS)
    if "Idempotency-Key" in (case.headers or {}) and dice.random() < 0.9:
        case.headers["Idempotency-Key"] = f"fuzz-{dice.getrandbits(64)}"
    # Do not wait: other tests cover waiting.
    if "wait" in (case.query or {}):
        case.query["wait"] = 0
    if str(case.query.get("follow") if case.query else "").lower() == "true":
        case.query["follow"] = "false"
    if case.query and "logs" in case.operation.path and dice.random() < 0.8:
        for other in ("limit", "offset", "role", "task") if "tail" in case.query else ("limit", "task"):
            case.query.pop(other, None)
    if not isinstance(case.body, dict) or dice.random() < 0.2:
        return
    if case.operation.path in ("/jobs", "/jobs/validate"):
        whole_job(case.body, dice)
    elif case.operation.path.startswith("/clusters"):
        whole_cluster(case, dice)


def whole_job(job, dice):
    if dice.random() < 0.9:
        job.pop("id", None)
    tao = ("network_arch", "action", "specs")
    if all(job.get(key) for key in ("network_arch", "action", "image")) and dice.random() < 0.7:
        job.pop("command", None)
    else:
        for key in tao:
            job.pop(key, None)
        job.setdefault("command", "true")
        if not isinstance(job["command"], str):
            job["command"] = "true"
    if job.get("image"):
        job["image"] = dice.choice(["/images/a.sqsh", "nvcr.io/nvidia/tao/tao-toolkit:6.26.3-pyt", "nvcr.io#a/b:c"])
    else:
        job.pop("container", None)
    resources = job.get("resources")
    if isinstance(resources, dict):
        job.pop("num_gpu", None)
        resources.pop("timeout_hours", None)
        resources.pop(dice.choice(["num_gpus", "gpus_per_node"]), None)
        if isinstance(resources.get("time_hours"), (int, float)):
            resources["time_hours"] = min(resources["time_hours"], 4)
    if isinstance(job.get("backend_details"), dict) and "cluster_name" in job["backend_details"]:
        job["backend_details"]["cluster_name"] = "away"
    if not job.get("steps"):
        job.pop("steps", None)
        job.pop("services", None)
    else:
        job.pop("command", None)
    array = job.get("array")
    if isinstance(array, dict):
        kept = dice.choice(["values", "matrix", "indices"])
        for other in {"values", "matrix", "indices"} - {kept}:
            array.pop(other, None)
        if not array.get(kept):
            job["array"] = {"indices": "0-9"}
    if isinstance(job.get("webhook"), dict):
        job["webhook"]["url"] = "https://example.org/hook"


def whole_cluster(case, dice):
    cluster = case.body
    if "hosts" not in cluster:
        return
    if "name" in (case.path_parameters or {}):
        cluster.pop("name", None)
    else:
        cluster["name"] = f"fuzz-{dice.randrange(20)}"
    cluster.update(hosts=["127.0.0.1:9"], host_keys=[HOST_KEY], ssh_key="dgx")
    for key in ("connect_timeout", "poll_min", "poll_max", "timeout_hours", "require_sqsh"):
        cluster.pop(key, None)
    if isinstance(cluster.get("time_hours"), (int, float)):
        cluster["max_time_hours"] = cluster["time_hours"]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Returns whether this is a real failure."""
    try:
        problem = response.json()
    except ValueError:
        return True
    if not isinstance(problem, dict):
        return True
    kind = type(failure).__name__
    if kind == "ServerError":
        return not (response.status_code in (502, 503) and problem.get("code") in AWAY)
    if kind == "AcceptedNegativeData":
        # RFC 9110: what is longer than every limit can be larger than the largest body, too.
        return not (response.status_code == 413 and len(response.request.body or "") > LARGEST_BODY)
    if kind == "EnsureResourceAvailability":
        return problem.get("code") not in NOT_EVERY_JOB
    if kind == "RejectedPositiveData":
        # The first test of an optional header sends `0` whatever its pattern (4.32.5).
        if problem.get("code") == "invalid_header" and (case.headers or {}).get("If-Match") == "0":
            return False
        if problem.get("code") in BEYOND_REQUESTS:
            return False
        errors = problem.get("errors") or []
        unexpected = [error for error in errors if not is_beyond(error)]
        if unexpected:
            # The report shows only the beginning of an answer.
            print("refused against the document:", unexpected, file=sys.stderr)
        return not errors or bool(unexpected)
    return True


def is_beyond(error):
    where, code = error.get("pointer") or "", error.get("code")
    if where.startswith("/jobs/"):
        # A job of a pipeline: the rest is as of a job alone.
        _, slash, rest = where[len("/jobs/"):].partition("/")
        where = slash + rest
    if where.startswith(("/steps/", "/services/")) and where.count("/") > 2:
        # A field of a step or a service is as the job's.
        where = "/" + where.split("/", 3)[3]
    if code in ("required", "unknown_field"):
        return where == "" or where.startswith(NEEDED)
    # Steps, services and their copies are limited together.
    if where in ("/steps", "/services") and code == "too_many":
        return True
    return code in BEYOND_SCHEMAS or code in ("invalid", "out_of_range") and where.startswith(BEYOND_PATTERNS)
