"""From an answer of a failed request to its exception."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from tao_slurm._text import clean, one_line
from tao_slurm.errors import ApiError
from tao_slurm.models import FieldError
from tao_slurm.problems import BY_CODE


def read_problem(status: int, content: bytes, retry_after: float | None) -> ApiError:
    """The exception for an answer with this status. The content may be anything."""
    document = parse(content)
    code = document.get("code")
    if not isinstance(code, str) or not code:
        excerpt = one_line(content[:2000].decode("utf-8", "replace"), 200)
        detail = f"the answer is no problem document of the service: {excerpt!r}" if excerpt else "the answer is empty"
        return ApiError(status=status, title="The request failed", detail=detail, retry_after=retry_after)
    known = BY_CODE.get(code, ApiError)
    return known(
        status=status,
        title=text_of(document, "title") or "The request failed",
        detail=text_of(document, "detail"),
        code=clean(code, 100),
        errors=faults(document.get("errors")),
        request_id=text_of(document, "request_id") or None,
        retry_after=retry_after,
    )


def parse(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def text_of(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    return clean(value) if isinstance(value, str) else ""


def faults(value: Any) -> list[FieldError]:
    """Those of the first hundred entries that can be read."""
    found = []
    for entry in value[:100] if isinstance(value, list) else ():
        try:
            fault = FieldError.model_validate(entry)
        except ValidationError:
            continue
        pointer = fault.pointer and clean(fault.pointer, 300)
        found.append(fault.model_copy(update={"detail": clean(fault.detail), "pointer": pointer}))
    return found
