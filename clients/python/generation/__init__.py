"""Makes the parts of the package that follow from the OpenAPI document, and the synchronous half.

Nothing that this makes is committed: the build of a wheel and `clients/python/build` make it.
"""

import json
from pathlib import Path

from . import models, operations, problems, synchronous
from .document import Document

PACKAGE = Path("src/tao_slurm")


def make(root: Path) -> list[Path]:
    """Writes the generated files of the package in `root`, and returns their paths."""
    root = root.resolve()
    document = Document(json.loads(find_document(root).read_text()))
    package = root / PACKAGE
    made = [
        write(package / "models.py", models.source(document)),
        write(package / "problems.py", problems.source(document)),
        write(package / "_secret_names.py", problems.secret_names(document)),
        write(package / "_async" / "operations.py", operations.source(document)),
    ]
    for source in sorted((package / "_async").glob("*.py")):
        made.append(write(package / "_sync" / source.name, synchronous.source(source.read_text())))
    return made


def find_document(root: Path) -> Path:
    """A source distribution has its own copy of the document; in the repository it is two levels up."""
    own = root / "openapi.json"
    return own if own.exists() else root.parent.parent / "openapi" / "openapi.json"


def write(path: Path, text: str) -> Path:
    """Replaces a file at once, so that a build at the same time reads the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        draft = path.with_suffix(".new")
        draft.write_text(text)
        draft.replace(path)
    return path
