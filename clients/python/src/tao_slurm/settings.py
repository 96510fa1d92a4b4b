"""Where the service is, and with which token.

Each setting comes from the first of these that has it:

1. the arguments of `Client`; `profile=` counts as one, and selects address and token of a profile;
2. the environment: `TAO_SLURM_URL`, `TAO_SLURM_TOKEN`, and `TAO_SLURM_PROFILE`, which names a profile;
3. the profile, in `~/.config/tao-slurm/config.toml`, or below `XDG_CONFIG_HOME`, which `tao-slurm login` writes:

```toml
profile = "lab"                             # the profile without TAO_SLURM_PROFILE

[profiles.lab]
url = "https://slurm.example.org"
token_file = "~/.config/tao-slurm/token"    # or: token = "…"
```

The token of a profile goes only to the address of that profile.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tao_slurm.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["DEFAULT_URL", "Settings", "read_settings"]

DEFAULT_URL = "http://127.0.0.1:8080"
"""The address without any setting."""
CONFIG = Path("tao-slurm/config.toml")
LARGEST = 1024 * 1024
TOKEN = re.compile(r"[!-~]{1,65536}")


class Settings:
    """An address and a token. The token is in no `repr`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url: str = checked_url(url)
        """The address, without `/` at its end."""
        self._token = None if token is None else checked_token(token)

    @property
    def authorization(self) -> str | None:
        """The value of the header."""
        return None if self._token is None else f"Bearer {self._token}"

    def __repr__(self) -> str:
        return f"Settings(url={self.url!r}, token={'…' if self._token else None})"


def read_settings(
    url: str | None = None,
    token: str | None = None,
    profile: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config: Path | None = None,
) -> Settings:
    """The settings from the arguments, the environment and the configuration file, in this order."""
    variables = os.environ if environ is None else environ
    chosen = read_profile(profile, variables.get("TAO_SLURM_PROFILE") or None, config or default_config(variables))
    # An argument comes before the environment, so with `profile=` the variables do not count.
    beside = variables if profile is None else {}
    address = url or beside.get("TAO_SLURM_URL") or None
    given = token if token is not None else (beside.get("TAO_SLURM_TOKEN") or None)
    if given is None and (address is None or address.rstrip("/") == (chosen.url or "").rstrip("/")):
        given = chosen.token()
    return Settings(address or chosen.url or DEFAULT_URL, given)


def default_config(variables: Mapping[str, str]) -> Path:
    """The file of this user (XDG Base Directory Specification)."""
    base = Path(variables.get("XDG_CONFIG_HOME") or "")
    return (base if base.is_absolute() else Path("~/.config").expanduser()) / CONFIG


class Profile:
    def __init__(self, name: str, entries: Mapping[str, Any], config: Path) -> None:
        self._name, self._entries, self._config = name, entries, config
        self.url: str | None = self._text("url")

    def token(self) -> str | None:
        """The token, or the content of its file."""
        token, file = self._text("token"), self._text("token_file")
        if token is not None and file is not None:
            raise SettingsError(f"{self._config}: the profile {self._name!r} has both token and token_file")
        return token if file is None else read_token(self._config.parent / Path(file).expanduser())

    def _text(self, key: str) -> str | None:
        value = self._entries.get(key)
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"{self._config}: {key} of the profile {self._name!r} must be a text")
        return value


def read_profile(argument: str | None, variable: str | None, config: Path) -> Profile:
    """The profile that the argument, the variable or the file names; an empty one if none does."""
    document = read_config(config)
    name = argument or variable or document.get("profile")
    if name is None:
        return Profile("", {}, config)
    profiles = document.get("profiles", {})
    if not isinstance(profiles, dict) or not isinstance(profiles.get(name), dict):
        known = ", ".join(sorted(profiles)) if isinstance(profiles, dict) and profiles else "none"
        raise SettingsError(f"{config}: no profile {name!r}; profiles: {known}")
    return Profile(str(name), profiles[name], config)


def read_config(config: Path) -> dict[str, Any]:
    try:
        text = read_small(config)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{config}: {error}") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The error has a place, and no line of the file.
        raise SettingsError(f"{config}: {error}") from None


def read_token(file: Path) -> str:
    try:
        return read_small(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text"
        raise SettingsError(f"the token file {file} cannot be read: {reason}") from None


def read_small(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"the file has more than {LARGEST} bytes")
    return content.decode()


def checked_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise SettingsError("the address is not a URL") from None
    if parts.username is not None or parts.password is not None:
        raise SettingsError("the address has a user or a password; give a token instead")
    if parts.scheme not in ("http", "https") or not has_host or parts.query or parts.fragment:
        raise SettingsError(f"the address {url!r} is not like https://slurm.example.org")
    return url.strip().rstrip("/")


def checked_token(token: str) -> str:
    """The token, if it can be in a header. No error shows it."""
    if not TOKEN.fullmatch(token.strip()):
        raise SettingsError("the token is empty or has characters that no token has")
    return token.strip()
