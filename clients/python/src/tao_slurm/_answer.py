"""Answers, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from tao_slurm._model import Model
from tao_slurm._text import one_line
from tao_slurm.errors import BadAnswer

LARGEST = 256 * 1024 * 1024
"""The most bytes of an answer that a client reads. The service has far smaller limits."""
ModelT = TypeVar("ModelT", bound=BaseModel)


class Warned(Model):
    detail: str = ""


class Created(Model):
    """What must be in the answer to a submission."""

    id: UUID
    warnings: list[Warned] = []


class Named(Model):
    name: str
    id: UUID


class CreatedPipeline(Model):
    """As `Created`, of a pipeline."""

    id: UUID
    jobs: list[Named]


@dataclass(frozen=True)
class Answer:
    """A successful answer."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    content: bytes = field(repr=False)
    request: str
    """Method and path, for messages."""
    tries: int = 1

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def read(self, model: type[ModelT]) -> ModelT:
        try:
            return model.model_validate_json(self.content)
        except ValidationError as error:
            raise self.bad(error) from None

    def read_list(self, model: type[ModelT]) -> list[ModelT]:
        try:
            return TypeAdapter(list[model]).validate_json(self.content)  # type: ignore[valid-type]
        except ValidationError as error:
            raise self.bad(error) from None

    def bad(self, error: ValidationError) -> BadAnswer:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the answer"
        kind = one_line(self.headers.get("content-type", "no content type"), 100)
        return BadAnswer(f"{self.request}: {place}: {one_line(first['msg'], 200)} (HTTP {self.status}, {kind})")
