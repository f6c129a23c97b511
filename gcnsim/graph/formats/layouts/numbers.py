"""Tables of numbers as text without a header, one row a line, split at commas, gzip or not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from gcnsim.errors import FileError
from gcnsim.graph.formats.source import plain_bytes
from gcnsim.ids import AnyArray


def read_numbers(path: Path, dtype: DTypeLike) -> AnyArray:
    """The table at `path`, [rows, columns] of `dtype`; an empty file is [0, 0].

    Raises FileError, the path first, when it cannot be read, is truncated, or holds anything but equally long rows of
    such numbers.
    """
    try:
        with plain_bytes(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # a whole number like `1.5` is only a deprecation to NumPy
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            table = np.loadtxt(file, dtype, delimiter=",", ndmin=2, encoding="latin-1")
    except (ValueError, OverflowError, Warning) as error:
        raise FileError(f"{path}: {' '.join(str(error).split())}") from None
    return table if table.size else table.reshape(0, 0)


def read_column(path: Path, dtype: DTypeLike) -> AnyArray:
    """The only column of the table at `path`. Raises FileError as `read_numbers`, and for more columns."""
    table = read_numbers(path, dtype)
    if table.size and table.shape[1] != 1:
        raise FileError(f"{path}: {table.shape[1]} columns; 1 is needed")
    return table.ravel()


def columns_of(path: Path) -> int:
    """The columns of the first line at `path`; 0 when there is none. Raises FileError when it cannot be read."""
    with plain_bytes(path) as file:
        line = file.readline(2**26)
    return line.count(b",") + 1 if line.strip() else 0
