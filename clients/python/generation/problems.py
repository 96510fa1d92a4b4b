"""An exception for each problem code, and the names of secret fields."""

import re

from .document import Document, Json

# Answers for addresses outside of the document, which therefore cannot name them.
OUTSIDE = {"not_found": (404, "No such path"), "method_not_allowed": (405, "The path does not support this method")}
NAMED = re.compile(r"([^().][^()]*?) \(`(\w+)`\)\.")
HEAD = '''"""Exceptions by the `code` of a problem. `docs/errors.md` of the service says what to do about each."""

from tao_slurm.errors import ApiError
'''
CLASS = '''

class {name}(ApiError):
    """{title} ({status})."""

    code = "{code}"
'''


def table(document: Document) -> dict[str, tuple[int, str]]:
    """Status and title of each code."""
    found = dict(OUTSIDE)
    for _, _, operation in document.operations():
        for status, response in operation["responses"].items():
            if status >= "400":
                for title, code in NAMED.findall(response["description"]):
                    found[code] = (int(status), title.strip())
    return dict(sorted(found.items()))


def source(document: Document) -> str:
    codes = table(document)
    names = {code: "".join(word.capitalize() for word in code.split("_")) for code in codes}
    classes = [CLASS.format(name=names[code], title=title, status=status, code=code) for code, (status, title) in codes.items()]
    rows = [f'    "{code}": {name},\n' for code, name in names.items()]
    listed = "".join(f'    "{name}",\n' for name in ["BY_CODE", *names.values()])
    by_code = "\n\nBY_CODE: dict[str, type[ApiError]] = {\n" + "".join(rows) + '}\n"""The exception of each code."""\n'
    return HEAD + "".join(classes) + by_code + f"\n__all__ = [\n{listed}]\n"


def secret_names(document: Document) -> str:
    """The fields that a text about a model must not show: what the document marks, and variables, which may hold secrets."""
    names = {"docker_env_vars", "env", "env_vars", "enroot_credentials"}
    for name in document.used():
        names |= marked(document.schemas[name])
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return f'"""Fields whose values no text shows."""\n\nSECRET = frozenset({{\n{listed}}})\n'


def marked(schema: Json) -> set[str]:
    found = {
        name
        for name, field in schema.get("properties", {}).items()
        if field.get("writeOnly") or str(field.get("$ref", "")).endswith("/SecretText")
    }
    return found.union(*(marked(part) for part in schema.get("allOf", ())))
