"""Runs the Python of a document, block by block. Address and token are in the environment. Argument: the document."""

import re
import sys
from pathlib import Path

name = sys.argv[1]
text = Path(name).read_text()
blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
assert len(blocks) > 3, name
names: dict[str, object] = {"__name__": "__main__"}
for block in blocks:
    # Errors have the line of the document.
    above = "\n" * text.count("\n", 0, block.start(1))
    exec(compile(above + block[1], name, "exec"), names)
print("all done")
