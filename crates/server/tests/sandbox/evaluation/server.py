"""A model server that speaks the part of OpenAI's protocol that an evaluation needs. It answers after it has loaded for LOADS
seconds, with HELD when the job's results directory has the file `go`, and not at all with DEAF."""

import http.server
import json
import os
import time

NAME = os.environ["SLURMD_NODENAME"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body):
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if "DEAF" in os.environ:
            time.sleep(3600)
        self.answer({"data": [{"id": "tiny"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = asked["messages"][-1]["content"]
        print(f"answers {question}", flush=True)
        time.sleep(0.02)
        self.answer({"model": NAME, "choices": [{"message": {"role": "assistant", "content": question.upper()}}]})

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A check of HAProxy resets its connection."""


print("loading", flush=True)
time.sleep(float(os.environ.get("LOADS", "0")))
while "HELD" in os.environ and not os.path.exists("{TAO_API_RESULTS_DIR}/{TAO_API_JOB_ID}/go".format(**os.environ)):
    time.sleep(0.1)
Server(("", int(os.environ["PORT"])), Handler).serve_forever()
