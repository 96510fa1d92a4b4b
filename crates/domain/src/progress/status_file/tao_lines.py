"""Writes tao_lines.jsonl: status lines as TAO's own code writes them, each with what TAO's StatusParser reads from it.

    .tools/tao-client/bin/python crates/domain/src/progress/status_file/tao_lines.py

It runs the published nvidia-tao-core (ci/setup --test installs it): StatusLogger, StatusCallback, the decorator
monitor_status, the final lines of ContainerJobHandler, and StatusParser. Only packages that are not installed are replaced by
empty classes, and the database by a list. The lines of the trainers in other packages are made by
StatusLogger from the dictionaries that they pass to it.
"""

import datetime
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import logging
import pathlib
import sys
import tempfile
import types

ABSENT = ("transformers", "tqdm", "toml", "fsspec")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a package that is not installed as one whose every name is an empty class."""

    def find_spec(self, name, path, target=None):
        is_absent = name.partition(".")[0] in ABSENT
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_absent else None

    def create_module(self, spec):
        def attribute(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        module = types.ModuleType(spec.name)
        module.__getattr__ = attribute
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(Absent())

from nvidia_tao_core.callbacks import transformers_status_callback as callback
from nvidia_tao_core.loggers import decorators
from nvidia_tao_core.loggers import logging as tao
from nvidia_tao_core.microservices.handlers import container_handler
from nvidia_tao_core.microservices.utils import handler_utils

logging.disable(logging.CRITICAL)
FILE = pathlib.Path(tempfile.mkdtemp()) / "status.json"
SECONDS = [1_800_000_000.0]


class Now(datetime.datetime):
    """A clock that stands still, so that the file is the same each time."""

    @classmethod
    def now(cls, tz=None):
        return cls(2027, 1, 5, 8, 3, 9)


tao.datetime = Now
callback.time = types.SimpleNamespace(time=lambda: SECONDS[0])
tao._status_callback = lambda text: None
rows = []


def read(text):
    """What StatusParser reads from a line."""
    parser = handler_utils.StatusParser("dino", "/results")
    handler_utils.get_dnn_status = lambda *args, **kwargs: [json.loads(text)]
    read = parser.update_results(job_id="job")["job"]
    fields = {**read["detailed_status"], **{key: read[key] for key in handler_utils.CONTINUOUS_STATUS_KEYS}}
    if "key_metric" not in json.loads(text):
        # StatusParser begins with 0.
        del fields["key_metric"]
    for group in ("kpi", "graphical"):
        fields[group] = {one["metric"]: list(one["values"].values())[-1] for one in read[group]} or None
    fields["categorical"] = [one["metric"] for one in read["categorical"]] or None
    return {key: value for key, value in fields.items() if value is not None and value == value}


def collect(by, act):
    """Appends the lines that an act of TAO's code writes."""
    FILE.unlink(missing_ok=True)
    tao.set_status_logger(tao.StatusLogger(filename=str(FILE), is_master=True, verbosity=tao.Verbosity.INFO))
    try:
        act()
    except (ValueError, KeyboardInterrupt):
        pass
    rows.extend({"by": by, "line": line, "reads": read(line)} for line in FILE.read_text().splitlines())


def write(by, data=None, status=tao.Status.RUNNING, message=None, verbosity=tao.Verbosity.INFO, **groups):
    """A line of a trainer of another package."""

    def act():
        logger = tao.get_status_logger()
        for group, values in groups.items():
            setattr(logger, group, values)
        logger.write(data=data, status_level=status, verbosity_level=verbosity, message=message)

    collect(by, act)


def train():
    """A training of two epochs with StatusCallback, as transformers calls it."""
    args = types.SimpleNamespace(num_train_epochs=3.0)
    state = types.SimpleNamespace(
        is_world_process_zero=True, global_step=0, max_steps=450, num_train_epochs=3.0, epoch=0.0
    )
    own = callback.StatusCallback(str(FILE.parent))
    own.on_train_begin(args, state, None)
    for epoch in (1.0, 2.0):
        own.on_epoch_begin(args, state, None)
        for part, loss in ((0.33, 1.25), (0.67, float("nan") if epoch == 2.0 else 0.75)):
            SECONDS[0] += 40.5
            state.global_step += 50
            state.epoch = epoch - 1 + part
            logs = {"loss": loss, "learning_rate": 1e-05, "epoch": state.epoch, "total_flos": 1.0}
            own.on_log(args, state, None, logs=logs)
        state.global_step += 50
        state.epoch = epoch
        own.on_epoch_end(args, state, None)
    state.global_step = 350
    own.on_log(args, state, None, logs={"eval_loss": 0.5, "eval_accuracy": 0.875, "epoch": 2.33})
    own.on_train_end(args, state, None)


def monitored(error):
    """A function below monitor_status."""

    @decorators.monitor_status(name="DINO", mode="train", results_dir=str(FILE.parent))
    def run():
        if error:
            raise error

    return run


job = {"action_name": "train", "neural_network_name": "dino"}
handler = container_handler.ContainerJobHandler


def cleanup(**how):
    return lambda: handler._cleanup(job=job, status_logger=tao.get_status_logger(), status_file=str(FILE), **how)


collect("StatusCallback", train)
collect("monitor_status", monitored(None))
collect("monitor_status", monitored(ValueError("the loss went away")))
collect("monitor_status", monitored(KeyboardInterrupt()))
collect("ContainerJobHandler", lambda: handler._handle_failure(job, tao.get_status_logger(), str(FILE)))
collect("ContainerJobHandler", cleanup(is_completed=True))
collect("ContainerJobHandler", cleanup(is_completed=False))
collect("ContainerJobHandler", cleanup(is_completed=False, is_graceful_pause=True))

pace = {"time_per_epoch": "0:00:12.250000", "eta": "0:01:01.250000"}
write("TAOStatusLogger", status=tao.Status.STARTED, message="Starting Training Loop.")
write("TAOStatusLogger", {"epoch": 1, "max_epoch": 6, **pace}, message="Training loop in progress")
write("TAOStatusLogger", {"epoch": 2, "max_epoch": 6, **pace}, message="Training loop in progress", kpi={"val_acc": 0.5})
write("Lightning", message="Train metrics generated.", kpi={"train_loss": 0.25, "train_acc": 1})
write("Lightning", message="Eval metrics generated.", kpi={"mAP": 0.625, "mAP50": "0.75", "note": "best so far"})
write("pointpillars", {"epoch": 3, "max_epoch": 80, **pace}, kpi={"learning_rate": 0.003, "loss": 0.5})
write("re_identification", {"epoch": 3, "max_epoch": 80, **pace}, graphical={"loss": 0.5, "learning_rate": 1e-4})
write("Keras", {"epoch": 3, "max_epoch": 80, **pace}, graphical={"validation_loss": "0.125", "validation_accuracy": "0.94"})
write("DetectNet", categorical={"average_precision": {"car": 71.5, "person": None}}, kpi={"mean average precision": 71.5})
write("MMLab", {"mode": "val", "epoch": 2, "max_epoch": 9, "cur_iter": 40, "time_per_iter": "00:00:01"}, kpi={"mIoU": 0.5})
write("MMLab", {"mode": "train", "epoch": 2, "max_epoch": 9, "cur_iter": 40, "lr": 0.01}, graphical={"loss": 0.5})
write("MMLab", {"mode": "train", "epoch": 2, "cur_iter": 41}, kpi={"loss": 0.5})
write("analytics", kpi={"analyze_type": "object_count", "index": {"0": "car"}, "count_num": {"0": 12}, "percent": {"0": 100}})
write("analytics", kpi={"analyze_type": "bbox_area", "type": {"0": "car"}, "mean": {"0": 12.5}})
write("analytics", categorical={"num_objects": {"car": 12}}, message="Cumulative object statistics")
plot = {"value": 0.5, "x_min": 1, "x_max": 9, "y_min": 0, "y_max": 2, "units": "m"}
write("values", graphical={"loss": plot, "mAP": {"value": "0.9"}})
write("values", kpi={"mAP": {"value": 0.9}, "empty": {}, "none": {"value": None}, "table": {"car": 1}})
write("values", kpi={"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": {"value": float("nan")}, "e": 1})
write("values", kpi={"a": "nan", "b": "inf", "c": "Infinity", "e": " 1e-3 "}, graphical={"f": float("nan")})
write("values", kpi={"true": True, "false": False, "none": None, "list": [1], "text": "", "int": "7", "big": 10**20})
write("values", kpi={"loss": 0.25}, graphical={"loss": 0.25, "rate": "0.5"})
write("values", kpi={})
write("values", {"key_metric": 0.75})
write("values", {"key_metric": "0.75"})
write("values", {"key_metric": float("nan")})
write("values", {"key_metric": 1})
write("values", {"epoch": "3", "max_epoch": "9"}, kpi={"val_acc": "0.94"})
write("values", {"epoch": 0, "max_epoch": 3.0, "cur_iter": "17"})
write("values", {"epoch": 2.67, "max_epoch": 3, "step": 400, "max_step": 450})
write("values", {"eta": 61.5, "time_per_epoch": 12, "time_per_iter": 0.25})
write("values", {"eta": "1 day, 2:00:00", "message": "of the data"})
write("values", status=tao.Status.SKIPPED, message="Nothing to do")
write("values", status=tao.Status.FAILURE, verbosity=tao.Verbosity.ERROR, message='quotes " and \\ and é and \u2028')
write("values", status=tao.Status.SUCCESS, message="line 1\nline 2")
write("values", {"epoch": 4, "max_epoch": 9}, kpi={"loss": 0.5, "curve": {"value": [1, 2]}}, categorical="text")
write("values", {"epoch": 4, "max_epoch": 9}, kpi=[1, 2], graphical="text")

out = pathlib.Path(__file__).with_name("tao_lines.jsonl")
made_by = f"{pathlib.Path(__file__).name} with nvidia-tao-core {importlib.metadata.version('nvidia-tao-core')}"
out.write_text("".join(json.dumps(row) + "\n" for row in [{"made_by": made_by}, *rows]))
print(f"{len(rows)} lines")
