"""Bodies of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel, SecretStr


class Body:
    """The JSON of a request, which no `repr` shows."""

    def __init__(self, value: BaseModel | Mapping[str, Any] | None) -> None:
        self.content: bytes | None = None if value is None else encode(value)


def encode(value: BaseModel | Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(plain(value), default=plain, allow_nan=False).encode()
    except ValueError as error:
        if "JSON compliant" in str(error):
            raise ValueError("the request has a number that is NaN or infinite; JSON has none") from None
        raise


def plain(value: Any) -> Any:
    """What JSON can write. A field that was not set is left out."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        given = {name: getattr(value, name) for name in value.model_fields_set if name in fields}
        return {fields[name].alias or name: content for name, content in given.items()} | (value.model_extra or {})
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (UUID, PurePath)):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, range)):
        return list(value)
    # The numbers of NumPy and PyTorch.
    if callable(item := getattr(value, "item", None)):
        return item()
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent as JSON")
