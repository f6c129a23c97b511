"""Terminals that keep what is written to them."""

from __future__ import annotations

import io
import re

_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    """A terminal of 80 columns."""

    def isatty(self) -> bool:
        return True


def drawn(written: str) -> list[str]:
    """The texts that one line had, one after the other; it is wiped at the end, and the cursor never hidden."""
    assert written.endswith("\n\r\x1b[1A\x1b[2K"), "the line is wiped"
    assert "\x1b[?25" not in written
    message = [_CODES.sub("", part).strip() for part in written.split("\r")]
    return [text for k, text in enumerate(message) if text and text not in message[:k]]
