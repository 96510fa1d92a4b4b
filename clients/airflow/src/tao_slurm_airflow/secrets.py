"""The secrets of a request, which no log may show."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic import SecretStr

__all__ = ["hide", "secret_values"]

SHORTEST = 5
SECRET_FIELDS = frozenset({"secret_env_vars", "secret_env", "cloud_metadata", "webhook"})
VARIABLES = frozenset({"docker_env_vars", "env"})
# The service takes a variable with one of these in its name as a secret.
SECRET_PARTS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "PRIVATE", "AUTH")


def hide(text: str, secrets: Collection[str]) -> str:
    """The text without the secrets. Airflow masks them in the logs of tasks, but not in the copy that executors print."""
    for secret in sorted(secrets, key=len, reverse=True):
        # As in Airflow, a short one would make holes everywhere.
        if len(secret) >= SHORTEST:
            text = text.replace(secret, "***")
    return text


def secret_values(value: Any, field: str = "", is_secret: bool = False) -> Iterator[str]:
    """All texts of secret fields, at any depth."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str) and is_secret:
        yield value
    elif isinstance(value, Mapping):
        for key, content in value.items():
            name = str(key)
            named = field in VARIABLES and any(part in name.upper() for part in SECRET_PARTS)
            yield from secret_values(content, name, is_secret or named or name in SECRET_FIELDS)
    elif hasattr(value, "model_fields_set"):
        yield from secret_values({name: getattr(value, name) for name in value.model_fields_set}, field, is_secret)
    elif isinstance(value, (list, tuple)):
        for content in value:
            yield from secret_values(content, field, is_secret)
