"""The synchronous half of the package, from the asynchronous source."""

import re
import tempfile
from pathlib import Path

import unasync  # type: ignore[import-untyped]

NAMES = {
    name: name.replace("Async", "")
    for name in (
        "AsyncBaseTransport", "AsyncClient", "AsyncJob", "AsyncOperations", "AsyncPipeline", "AsyncPipelineResults", "AsyncSweep",
        "AsyncTransport",
    )
}
NAMES |= {"_async": "_sync", "asyncio": "time", "aclose": "close", "aiter_bytes": "iter_bytes"}


def source(text: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        before, after = Path(place) / "a" / "module.py", Path(place) / "b" / "module.py"
        before.parent.mkdir()
        before.write_text(text)
        rule = unasync.Rule(fromdir="/a/", todir="/b/", additional_replacements=NAMES)
        unasync.unasync_files([str(before)], [rule])
        return documented(after.read_text())


def documented(text: str) -> str:
    """What is left is in docstrings, which unasync does not change."""
    text = re.sub(r"\b(?:await|async) ", "", text)
    return re.sub(r"\bAsync(?=Client|Job|Pipeline|Sweep)", "", text).replace("asynchronous", "synchronous")
