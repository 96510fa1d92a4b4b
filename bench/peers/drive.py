"""Lets the published TAO SDK submit jobs to Slurm and ask for their status, and says how long each call took.

Reads a line of JSON for each round from standard input ({"jobs": 10, "polls": 3, "image": …, "partition": …}) and answers
with one: the Slurm job ids and the seconds of each call. What the SDK itself reads is in the environment: SLURM_USER,
SLURM_HOSTNAME, SSH_KEY_PATH and so on. One SDK object serves all rounds, so that what it keeps is kept.
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


def play(sdk, wanted):
    submit, ask, statuses = [], [], []
    jobs = [
        timed(
            submit,
            sdk.create_job,
            image=wanted["image"],
            command="true",
            gpu_count=1,
            partition=wanted["partition"],
        )
        for _ in range(wanted["jobs"])
    ]
    for _ in range(wanted["polls"]):
        for job in jobs:
            statuses.append(timed(ask, sdk.get_job_status, job.id).status)
    return {"submit": submit, "ask": ask, "statuses": sorted(set(statuses))}


def main():
    # Its monitor looks at no job without hooks; asking is done here.
    sdk = SlurmSDK()
    for line in sys.stdin:
        print(json.dumps(play(sdk, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
