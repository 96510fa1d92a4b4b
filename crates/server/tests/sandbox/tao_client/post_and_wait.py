"""Posts a job and reads its status to the end, by the function that TAO's own services do it with.

Arguments: the base URL, and the job as JSON. Prints each answer that differs from the one before.
"""

import json
import sys
import time

from nvidia_tao_core.microservices.utils.handler_utils import send_microservice_request

base_url, job = sys.argv[1], json.loads(sys.argv[2])


def say(asked, response):
    print(json.dumps([asked, response.status_code, response.json()]), flush=True)


response = send_microservice_request(base_url, "post_action", **job)
say("post_action", response)
last, deadline = None, time.monotonic() + 540
while response.ok and last not in ("Done", "Error", "Canceled") and time.monotonic() < deadline:
    # As TAO's handlers ask: the specification again, of which the function sends the results directory only.
    response = send_microservice_request(
        base_url, "get_job_status", job["network"], job["action"], job_id=job["job_id"], specs=job["specs"]
    )
    status = response.json().get("status")
    if status != last:
        say("get_job_status", response)
    last = status
    time.sleep(0.2)
