"""A method for each call of the API."""

import re
from keyword import iskeyword
from textwrap import indent

from .document import Document, Json

HEAD = '''"""Every call of the API, by its `operation_id`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tao_slurm import models
from tao_slurm._async.transport import AsyncTransport
from tao_slurm._body import Body
from tao_slurm._retry import segment


class AsyncOperations:
    """Every call of the API as a method, without conveniences.

    Each takes the parameters of the OpenAPI document by their names, with `_` for `-`, and returns the body of the answer.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
'''
METHOD = '''
    async def {name}({arguments}) -> {result}:
{doc}
        answer = await self._transport.request(
            "{method}",
            {path},
            query={query},
            headers={headers},
            body={body},
            repeatable={repeatable},
        )
        return {read}
'''
# What the document says of itself: "The call can be repeated".
REPEATABLE = "can be repeated"
# A POST only because it has a body.
READS = {"validate_job"}
# Streams and waits have methods of their own.
LEFT_OUT = {"wait", "follow", "If-None-Match", "Last-Event-ID"}
PLAIN = {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "object": "dict[str, Any]"}


def source(document: Document) -> str:
    return HEAD + "".join(method(document, path, name, operation) for path, name, operation in document.operations())


def method(document: Document, path: str, method: str, operation: Json) -> str:
    parameters = [each for each in operation.get("parameters", ()) if each["name"] not in LEFT_OUT]
    places = {where: [each for each in parameters if each["in"] == where] for where in ("path", "query", "header")}
    body = operation.get("requestBody")
    arguments = ["self"] + [f"{python(each)}: UUID | str" if is_id(each) else f"{python(each)}: {of(each['schema'], document)}" for each in places["path"]]
    if body:
        name = body_name(body)
        arguments.append(f"body: models.{name} | Mapping[str, Any]" + ("" if body.get("required") else " | None = None"))
    optional = [each for each in places["query"] + places["header"] if not each.get("required")]
    required = [each for each in places["query"] + places["header"] if each.get("required")]
    if optional or required:
        arguments.append("*")
    arguments += [f"{python(each)}: {of(each['schema'], document)}" for each in required]
    arguments += [f"{python(each)}: {of(each['schema'], document)} | None = None" for each in optional]
    result, read = answer(operation)
    headers = {each["name"] for each in places["header"]}
    repeatable = method != "post" or operation["operationId"] in READS or "Idempotency-Key" in headers or REPEATABLE in operation.get("description", "")
    return METHOD.format(
        name=operation["operationId"],
        arguments=", ".join(arguments),
        result=result,
        doc=indent(docstring(operation), " " * 8),
        method=method.upper(),
        path=address(path),
        query=mapping(places["query"]),
        headers=mapping(places["header"]),
        body="Body(body)" if body else "None",
        repeatable=repeatable,
        read=read,
    )


def address(path: str) -> str:
    """The expression for a path with its parameters."""
    filled = re.sub(r"\{(\w+)\}", r"{segment(\1)}", path)
    return f'f"{filled}"' if filled != path else f'"{path}"'


def answer(operation: Json) -> tuple[str, str]:
    """The type of the answer, and the expression that reads it."""
    good = next(response for status, response in operation["responses"].items() if status.startswith("2"))
    content = good.get("content", {})
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        if schema.get("type") == "array":
            kind = f"models.{reference(schema['items'])}"
            return f"list[{kind}]", f"answer.read_list({kind})"
        kind = f"models.{reference(schema)}"
        return kind, f"answer.read({kind})"
    return ("str", "answer.text") if content else ("None", "None")


def docstring(operation: Json) -> str:
    text = operation["summary"] + ".\n\n" + operation.get("description", "")
    described = [
        f"- `{python(each)}`: {each['description']}"
        for each in operation.get("parameters", ())
        if each.get("description") and each["name"] not in LEFT_OUT
    ]
    text = (text.strip() + "\n\n" + "\n".join(described)).strip().replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def of(schema: Json, document: Document) -> str:
    """The type of a parameter."""
    if name := reference(schema):
        target = document.schemas[name]
        if "enum" in target:
            return f"models.{name} | str"
        return of(target, document)
    if "enum" in schema:
        return "str"
    if schema.get("type") == "array":
        return f"Sequence[{of(schema['items'], document)}]"
    if schema.get("format") == "uuid":
        return "UUID | str"
    if schema.get("format") == "date-time":
        return "datetime | str"
    return PLAIN[schema["type"]]


def body_name(body: Json) -> str:
    schema = body["content"]["application/json"]["schema"]
    return reference(schema) or next(name for part in schema["oneOf"] if (name := reference(part)))


def reference(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def is_id(parameter: Json) -> bool:
    return str(parameter["name"]) == "id"


def mapping(parameters: list[Json]) -> str:
    return "{" + ", ".join(f'"{each["name"]}": {python(each)}' for each in parameters) + "}"


def python(parameter: Json) -> str:
    name = re.sub(r"\W", "_", parameter["name"]).lower()
    return f"{name}_" if iskeyword(name) else name
