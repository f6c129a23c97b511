"""The constants of kernels, and their errors on graphs and GPUs left out: `python -m studies.fit_operators FILE`.

FILE has the form of `score_operators`. Accepted before the first comparison: sums left out by graph 15 % at the median,
by GPU 20 %; dense products left out by GPU 15 %. Fitted to sums: `spmm_efficiency` and `cache_bandwidth` of
`gcnsim/data/assumed.yaml` and `LOCALITY`, `SPREAD_LOCALITY`, `ROW_S`, `STEP_S` of `gcnsim.cost.device`; to products:
`TAIL`. A graph or a GPU that is left out is predicted by the constants that all other rows give. No device has a figure
of its own that follows from these rows, but for the gemm_efficiency of an MI100 (and of the GPUs that share it).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from scipy.optimize import least_squares

from gcnsim.core.errors import GcnsimError
from gcnsim.core.ids import FloatArray
from gcnsim.core.terminal import aligned
from gcnsim.cost import device as laws
from gcnsim.hardware import Figure, device
from studies.score_operators import LAWS, gpu_of, kind_of, score, seconds_of
from studies.scores import Row, measured_rows

START: Final[Mapping[str, Mapping[str, float]]] = {
    "spmm": {
        "spmm_efficiency": 0.85, "cache_bandwidth": 34e9, "ROW_S": 15e-9, "LOCALITY": 0.2, "SPREAD_LOCALITY": 0.1,
        "STEP_S": 40e-9,
    },
    "gemm": {"TAIL": 0.4},
}  # fmt: skip
"""By kind of operator, what a fit begins with and stays near where rows say little."""

HELD: Final = 0.2
"""What a constant costs that is e times as large as at the start, in units of an error of 100 %."""

DAMPED: Final = 0.15
"""Logarithmic error from which a row counts less than its square."""

Constants = Mapping[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print constants and errors; return the exit code."""
    parser = argparse.ArgumentParser(description="Fit the constants of kernels.")
    parser.add_argument("file", help="rows that others measured")
    given = parser.parse_args(arguments)
    try:
        rows = [row for row in measured_rows(given.file) if score(row).error is not None]
    except GcnsimError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for kind in START:
        own = [row for row in rows if kind_of(str(row["op"])) == kind]
        whole = [row for row in own if kind != "spmm" or "entries" in row]
        found = fit(whole, kind)
        sys.stdout.write(f"{kind}: {', '.join(f'{name} {value:.3g}' for name, value in found.items())}\n")
        sys.stdout.write("\n".join([*left_out_lines(whole, kind), ""]))
    return 0


def left_out_lines(rows: Sequence[Row], kind: str) -> list[str]:
    """Median and 90th percentile of the absolute errors: with all rows, and with each graph and GPU left out."""
    lines = [("all rows", *_texts(errors(rows, kind, fit(rows, kind))))]
    for name in ("graph", "gpu"):
        groups = {str(row.get(name)): row for row in rows}
        if len(groups) > 1:
            each = {group: [row for row in rows if str(row.get(name)) == group] for group in groups}
            found = {
                group: errors(own, kind, fit([row for row in rows if str(row.get(name)) != group], kind))
                for group, own in each.items()
            }
            lines.append((f"left out by {name}", *_texts(np.concatenate(list(found.values())))))
            lines += [(f"  {group}", *_texts(own)) for group, own in found.items()]
    return aligned(lines, ("", "n", "median error", "90th percentile", "bias"))


def fit(rows: Sequence[Row], kind: str) -> dict[str, float]:
    """The constants that `rows` give."""
    names, start = list(START[kind]), np.log(list(START[kind].values()))

    def cost(logs: FloatArray) -> FloatArray:
        constants = dict(zip(names, np.exp(logs), strict=True))
        return np.concatenate([np.log1p(errors(rows, kind, constants)), HELD * (logs - start)])

    found = least_squares(cost, start, loss="soft_l1", f_scale=DAMPED).x
    return {name: float(value) for name, value in zip(names, np.exp(found), strict=True)}


def errors(rows: Sequence[Row], kind: str, constants: Constants) -> FloatArray:
    """Signed relative errors of `rows` by these constants."""
    figures: dict[str, Any] = {
        name: Figure(value, "fitted", "", "") for name, value in constants.items() if name.islower()
    }
    with with_constants(constants):
        predicted = [LAWS[kind](replace(device(gpu_of(row)), **figures), row) for row in rows]
    return np.asarray(np.array(predicted) / np.array([seconds_of(row) for row in rows], dtype=np.float64) - 1.0)


@contextmanager
def with_constants(constants: Constants) -> Iterator[None]:
    """The laws with other constants."""
    with ExitStack() as stack:
        for name, value in constants.items():
            if name.isupper():
                stack.enter_context(patch.object(laws, name, value))
        yield


def _texts(found: FloatArray) -> tuple[str, ...]:
    sizes = np.abs(found)
    ends = f"{100 * np.median(sizes):.1f} %", f"{100 * np.percentile(sizes, 90):.0f} %"
    return str(found.size), *ends, f"{100 * found.mean():+.0f} %"


if __name__ == "__main__":
    sys.exit(main())
