"""Results written to files, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gcnsim.errors import FileError
from gcnsim.io.atomic import atomic_write


def write_json(path: str | Path, found: Mapping[str, Any]) -> None:
    """Write plain data as JSON. Raises FileError."""
    with atomic_write(Path(path), text=True) as file:
        file.write(json.dumps(dict(found), indent=2, allow_nan=False) + "\n")


def made(folder: str | Path) -> Path:
    """`folder`, created if needed. Raises FileError."""
    target = Path(folder)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{target}: cannot be made: {error.strerror}") from None
    return target
