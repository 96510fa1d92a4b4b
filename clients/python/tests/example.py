"""Answers with all fields that the OpenAPI document requires, for tests that look at a few of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[3] / "openapi" / "openapi.json"
VALUES = {"integer": 0, "number": 0.0, "boolean": False, "string": "text", "array": []}
FORMATS = {"date-time": "2026-11-28T10:00:00Z", "uuid": "01997a5e-7c1b-7c05-9d1e-0c5f3a0b5a11"}


@cache
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DOCUMENT.read_text())["components"]["schemas"]
    return found


def example(schema: str, **more: Any) -> dict[str, Any]:
    """An answer of this schema, with some other values."""
    made: dict[str, Any] = value(schemas()[schema])
    return made | more


def value(schema: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return value(schemas()[schema["$ref"].rpartition("/")[2]])
    if "allOf" in schema:
        return {key: each for part in schema["allOf"] for key, each in value(part).items()}
    choices = schema.get("oneOf") or schema.get("anyOf")
    if choices:
        return None if {"type": "null"} in choices else value(choices[0])
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if isinstance(kind, list):
        return None
    if kind == "object":
        return {key: value(schema["properties"][key]) for key in schema.get("required", ())}
    return FORMATS.get(schema.get("format", ""), VALUES.get(str(kind)))
