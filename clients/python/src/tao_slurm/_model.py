"""What all models have in common."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict

from tao_slurm._secret_names import SECRET


class Model(BaseModel):
    """A part of a request or of an answer.

    Fields that only a newer service knows are kept, in `model_extra`. Secrets are in no `repr`, and values in no error.
    """

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True, protected_namespaces=())

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, "…" if name in SECRET and value is not None else value


class OpenEnum(str, Enum):
    """A text of a known set. A text that only a newer service knows is kept, as a member without a name of its own."""

    @classmethod
    def _missing_(cls, value: object) -> OpenEnum | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = value
        member._value_ = value
        return member

    def __str__(self) -> str:
        return str(self.value)
