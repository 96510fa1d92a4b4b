"""Texts of jobs and services, made fit for one line of a task's log."""

from __future__ import annotations

__all__ = ["one_line"]


def one_line(text: str, longest: int) -> str:
    """At most `longest` characters in one line, and none that controls a terminal."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "\ufffd" for letter in short).rstrip()
