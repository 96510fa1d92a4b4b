#!/usr/bin/env python3
"""The clients of the systemd trial. They submit jobs, read them and follow their events, all through the proxy, until the file
`stop` appears in the directory. Then they wait until each job has ended, and write `summary.json` there.

    load.py DIRECTORY URL CERTIFICATE      the token is in TAO_SLURM_TOKEN

A client repeats a request that got no answer, 502, 503 or 504, with the same Idempotency-Key. Any other 5xx is a finding."""

import collections
import http.client
import json
import os
import ssl
import sys
import threading
import time
import traceback
import urllib.parse
import uuid
from pathlib import Path

DIRECTORY, URL, CERTIFICATE = Path(sys.argv[1]), urllib.parse.urlsplit(sys.argv[2]), sys.argv[3]
TLS = ssl.create_default_context(cafile=CERTIFICATE)
AUTHORIZATION = {"Authorization": f"Bearer {os.environ['TAO_SLURM_TOKEN']}"}
REPEATED = {502, 503, 504}
LOST = (OSError, http.client.HTTPException)
# One job, of a name that the number of the job replaces.
TEMPLATE = (DIRECTORY / "job.json").read_text()
SUBMIT_EVERY, READ_EVERY, GIVE_UP = 1.0, 0.1, 300.0

stop, ended = threading.Event(), threading.Event()
lock = threading.Lock()
jobs = {}
events = collections.defaultdict(list)
outcome = {}
seen = collections.Counter()
findings = []


def found(text):
    with lock:
        findings.append(text)


def connect(timeout):
    return http.client.HTTPSConnection(URL.hostname, URL.port, timeout=timeout, context=TLS)


class Client:
    """One client with a connection that it keeps."""

    def __init__(self):
        self.connection = None

    def ask(self, method, path, body=None, **headers):
        """The body of the answer. Asks again while the service asks for that."""
        since = time.monotonic()
        while time.monotonic() - since < GIVE_UP:
            try:
                self.connection = self.connection or connect(60)
                headers["Content-Type"] = "application/json"
                self.connection.request(method, path, body, {**AUTHORIZATION, **headers})
                answer = self.connection.getresponse()
                text = answer.read()
            except LOST as error:
                self.connection = None
                self.count(f"no answer: {type(error).__name__}")
            else:
                self.count(str(answer.status))
                if answer.status < 300:
                    return json.loads(text)
                if answer.status not in REPEATED:
                    found(f"{method} {path}: {answer.status} {text.decode()[:500]}")
                    return None
            time.sleep(0.2)
        found(f"{method} {path}: no success in {GIVE_UP:.0f} s")
        return None

    @staticmethod
    def count(what):
        with lock:
            seen[what] += 1


def submit():
    client, number = Client(), 0
    while not stop.wait(SUBMIT_EVERY):
        number += 1
        name = f"load-{number}"
        job = client.ask("POST", "/jobs", TEMPLATE.replace("load-NUMBER", name), **{"Idempotency-Key": str(uuid.uuid4())})
        if job:
            with lock:
                jobs[name] = job["id"]


def read():
    client = Client()
    while not ended.wait(READ_EVERY):
        client.ask("GET", "/jobs?limit=20")
        if known := list(jobs.values()):
            client.ask("GET", f"/jobs/{known[int(time.monotonic() * 10) % len(known)]}/status")


def follow():
    """One stream of all events, continued after each break."""
    position = ""
    while not ended.is_set():
        try:
            connection = connect(60)
            connection.request("GET", "/events", headers={
                **AUTHORIZATION, "Accept": "text/event-stream", **({"Last-Event-ID": position} if position else {})})
            answer = connection.getresponse()
            Client.count(f"stream {answer.status}")
            if answer.status != 200 and answer.status not in REPEATED:
                found(f"the stream got {answer.status} {answer.read().decode()[:500]}")
            while answer.status == 200 and (line := answer.readline()):
                if line.startswith(b"id:"):
                    position = line[3:].strip().decode()
                elif line.startswith(b"data:"):
                    note(json.loads(line[5:]))
        except LOST:
            pass
        time.sleep(0.2)


def note(event):
    if "seq" not in event:
        found(f"the stream sent {event}")
        return
    with lock:
        events[event["job_id"]].append(event["seq"])
        if event["data"].get("phase") == "ended":
            outcome[event["job_id"]] = event["data"]["status"]


def write(name, text):
    """At once: another process reads it."""
    partial = DIRECTORY / "partial"
    partial.write_text(text)
    partial.rename(DIRECTORY / name)


def alive(task):
    def run():
        try:
            task()
        except Exception:
            found(f"{task.__name__} ended: {traceback.format_exc()}")

    return run


threads = [threading.Thread(target=alive(task), daemon=True) for task in (submit, read, read, read, follow)]
for thread in threads:
    thread.start()
while not (DIRECTORY / "stop").exists():
    with lock:
        count = len(outcome)
    write("ended", f"{count}\n")
    time.sleep(0.2)
stop.set()
threads[0].join()
deadline = time.monotonic() + GIVE_UP
while time.monotonic() < deadline and not set(jobs.values()) <= set(outcome):
    time.sleep(0.2)
ended.set()
for name, job in jobs.items():
    if outcome.get(job) != "Done":
        findings.append(f"{name} ({job}): the stream says {outcome.get(job)}")
    if events[job] != list(range(1, len(events[job]) + 1)):
        findings.append(f"{name} ({job}): the stream sent the events {events[job]}")
write("summary.json", json.dumps({"jobs": jobs, "answers": seen, "findings": findings}, indent=1))
