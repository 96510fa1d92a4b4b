"""Texts of others, made fit for a message of ours."""

from __future__ import annotations

import re

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clean(text: str, longest: int = 2000) -> str:
    """At most `longest` characters, and none that controls a terminal."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return CONTROLS.sub("\ufffd", short)


def one_line(text: str, longest: int) -> str:
    return clean(" ".join(text.split()), longest)
