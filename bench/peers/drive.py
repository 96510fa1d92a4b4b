"""Drives the published TAO SDK: submits jobs to Slurm, queries their status, and reports how long each call took.

Reads a line of JSON for each round from standard input ({"jobs": 10, "polls": 3, "image": …, "partition": …}) and answers
with one: the Slurm job ids and the seconds of each call. The settings of the SDK are in the environment: SLURM_USER,
SLURM_HOSTNAME, SSH_KEY_PATH and so on. One SDK object serves all rounds, so that it keeps its state.
"""

import json
import sys
import time

from tao_sdk.platforms.slurm import SlurmSDK


def timed(seconds, call, *args, **kwargs):
    began = time.monotonic()
    result = call(*args, **kwargs)
    seconds.append(time.monotonic() - began)
    return result


def play(sdk, request):
    submit, ask, statuses = [], [], []
    jobs = [
        timed(
            submit,
            sdk.create_job,
            image=request["image"],
            command="true",
            gpu_count=1,
            partition=request["partition"],
        )
        for _ in range(request["jobs"])
    ]
    for _ in range(request["polls"]):
        for job in jobs:
            statuses.append(timed(ask, sdk.get_job_status, job.id).status)
    return {"submit": submit, "ask": ask, "statuses": sorted(set(statuses))}


def main():
    # The SDK monitors no job without hooks; this program queries the status itself.
    sdk = SlurmSDK()
    for line in sys.stdin:
        print(json.dumps(play(sdk, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
