"""Asks the model COUNT questions, eight at a time, and the judge about each answer, SLOW seconds later. What was answered before is in a cache.
It asks at most MOST: if more are left, it waits for its end."""

import concurrent.futures
import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.request

RESULTS = os.path.join(os.environ["TAO_API_RESULTS_DIR"], os.environ["TAO_API_JOB_ID"])
COUNT = int(os.environ["COUNT"])
lock = threading.Lock()


def ask(url, question):
    body = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": question}]}).encode()
    request = urllib.request.Request(url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
    for tries in range(30):
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as error:
            # As evaluators do: a server that is gone may come back. It may have gone in the middle of an answer.
            print(error, flush=True)
            time.sleep(1)
    raise OSError(f"{url} does not answer")


def evaluate(question):
    answer = ask(os.environ["MODEL_URL"], question)
    text = answer["choices"][0]["message"]["content"]
    time.sleep(float(os.environ.get("SLOW", "0")))
    judged = ask(os.environ["JUDGE_URL"], text)["choices"][0]["message"]["content"]
    with lock, open(cache, "a") as file:
        done[question] = {"by": answer["model"], "right": judged == question.upper()}
        file.write(json.dumps([question, done[question]]) + "\n")
        with open(os.path.join(RESULTS, "progress"), "w") as progress:
            progress.write(str(len(done)))


cache = os.path.join(RESULTS, "cache.jsonl")
done = {}
if os.path.exists(cache):
    done = dict(json.loads(line) for line in open(cache))
    print(f"{len(done)} answers are in the cache", flush=True)
left = [question for question in (f"question {number}" for number in range(COUNT)) if question not in done]
most = int(os.environ.get("MOST", COUNT))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(evaluate, left[:most]))
if len(left) > most:
    time.sleep(3600)
models = [one["by"] for one in done.values()]
scores = {"score": sum(one["right"] for one in done.values()) / COUNT, "by": {name: models.count(name) for name in models}}
with open(os.path.join(RESULTS, "scores.json"), "w") as file:
    json.dump(scores, file)
