"""How far off the laws of kernels are from others' times: `python -m studies.score_operators FILE`.

FILE has the form `{papers, rows}`. A row names its paper, op, GPU, and what was run: `rows`, `entries`, `degree_cv` and
`width` of a sparse sum, or its `graph`; the `shape` of a dense product; bytes of a copy. Prints a line for each (paper,
operator, GPU) and at last the median errors as JSON. A row of an unknown GPU, graph or kernel is counted, not an error.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from gcnsim.core.errors import GcnsimError
from gcnsim.cost import elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.hardware import DeviceProfile, device, devices, figures_of, host, link
from gcnsim.workload import dataset, datasets
from studies.scores import UNEXPECTED, Row, ScoredRow, judged, measured_rows, score_lines

COSTS: Final = frozenset({"launch_s"})
"""Figures of a device that slow a kernel down as they grow; all others speed it up."""

KINDS: Final = (
    ("spmm", "spmm"), ("update_all copy_u sum", "spmm"), ("gemm", "gemm"), ("copy", "copy"), ("gather", "gather"),
    ("neighbour sampling", "sampling"), ("elementwise", "elementwise"), ("element-wise", "elementwise"),
)  # fmt: skip
"""By what the name of an operator begins with."""

ELEMENT_PASSES: Final = 3
"""Values read and written by an element-wise operator of two operands."""

LIBRARIES: Final = ("cusparse", "dgl", "torch.sparse", "rocsparse")
"""Whose sparse sums the law is of."""

PLAIN: Final = ("", "fp32", "float32")


class InexpressibleError(Exception):
    """Why no law says anything of a row."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score of a file; return the exit code."""
    parser = argparse.ArgumentParser(description="Errors of the laws of kernels.")
    parser.add_argument("file", help="rows that others measured")
    given = parser.parse_args(arguments)
    try:
        rows = measured_rows(given.file)
    except GcnsimError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join([*score_lines([score(row) for row in rows], ("paper", "operator", "GPU")), ""]))
    return 0


def score(row: Row) -> ScoredRow:
    """One row beside the law of its operator."""
    op, gpu = str(row.get("op", "")), gpu_of(row)
    kind = kind_of(op)
    group = (str(row.get("paper", "")), op or "none", gpu)
    try:
        if gpu not in devices():
            raise InexpressibleError(f"GPU {gpu!r} is not in the catalogue")
        if kind not in LAWS:
            raise InexpressibleError(f"no law of {op!r}")
        law = LAWS[kind]
        ends = [law(profile, row) for profile in device_ends(device(gpu))]
    except InexpressibleError as error:
        return ScoredRow(group, kind, reason=str(error))
    except (GcnsimError, *UNEXPECTED) as error:
        return ScoredRow(group, kind, reason=f"a field is not as expected ({type(error).__name__})")
    return judged(group, kind, seconds_of(row), ends)


def kind_of(op: str) -> str:
    """The operator in a word; its own first word where no law is of it."""
    found = next((kind for begins, kind in KINDS if op.lower().startswith(begins)), None)
    return found or (op.lower().split() or ["none"])[0]


def gpu_of(row: Row) -> str:
    """The catalogue's name of the GPU: what stands before a remark."""
    text = str(row.get("gpu", "not printed")).lower().split(" (")[0].strip()
    return re.sub(r"^(nvidia|amd) ", "", text).replace(" ", "-") if "not printed" not in text else "not printed"


def seconds_of(row: Row) -> float | None:
    """The measured seconds."""
    value = row.get("ms")
    return value / 1e3 if isinstance(value, int | float) and not isinstance(value, bool) else None


def device_ends(profile: DeviceProfile) -> tuple[DeviceProfile, DeviceProfile, DeviceProfile]:
    """The device as it likely is, at its fastest and at its slowest: assumed figures at an end of their range."""
    ends = []
    for fast in (True, False):
        figures: dict[str, Any] = {
            name: replace(figure, value=figure.low if (name in COSTS) == fast else figure.high)
            for name, figure in figures_of(profile).items()
            if figure.low is not None and figure.high is not None
        }
        ends.append(replace(profile, **figures))
    return profile, ends[0], ends[1]


def value_bytes(row: Row) -> float:
    """Bytes of a value over those of fp32. Raises InexpressibleError for another format."""
    text = str(row.get("precision", "")).lower().split(" ")[0]
    if text in PLAIN:
        return 1.0
    raise InexpressibleError(f"precision {text}")


def sparse_sum(profile: DeviceProfile, row: Row) -> float:
    """Seconds of a sparse sum. Raises InexpressibleError for another library, or a graph whose sizes nothing says."""
    library = str(row.get("library", "cusparse")).lower()
    if not library.startswith(LIBRARIES):
        raise InexpressibleError(f"no constants of the kernel {row.get('library')!r}")
    value_bytes(row)
    rows, entries, spread = sizes_of(row)
    return float(spmm_seconds(with_spread(profile, spread), entries, rows, int(row["width"]), rows))


def sizes_of(row: Row) -> tuple[float, float, float | None]:
    """Rows, entries and the spread of degrees. Raises InexpressibleError for a graph of unknown sizes."""
    if "rows" in row and "entries" in row:
        cv = row.get("degree_cv")
        return float(row["rows"]), float(row["entries"]), None if cv is None else math.sqrt(math.log1p(float(cv) ** 2))
    name = str(row.get("graph", "")).split(" ")[0].lower()
    if name not in datasets():
        raise InexpressibleError(f"the sizes of the graph {row.get('graph')!r} are not known")
    facts = dataset(name)
    return float(facts.nodes), float(facts.directed or facts.entries), None


def with_spread(profile: DeviceProfile, spread: float | None) -> DeviceProfile:
    """The device for a graph of this spread of degrees."""
    return profile if spread is None else replace(profile, degree_spread=spread)


def dense_product(profile: DeviceProfile, row: Row) -> float:
    """Seconds of a product of (M x K) with (K x N), shape: M, N, K, or B, M, N, K. Raises InexpressibleError."""
    value_bytes(row)
    shape = [float(size) for size in row["shape"]]
    if not 3 <= len(shape) <= 4 or min(shape) < 1:
        raise InexpressibleError("a shape that is no product")
    m, n, k = shape[-3:]
    # The products of a batch run beside each other: as one of as many rows.
    return float(gemm_seconds(profile, m * (shape[0] if len(shape) == 4 else 1), k, n))


def copy(profile: DeviceProfile, row: Row) -> float:
    """Seconds of a copy of as many MiB as its name says, on the device or over its link. Raises InexpressibleError."""
    sizes = re.search(r"([\d.]+) (MiB|GiB|MB|GB)", str(row["op"]))
    if sizes is None:
        raise InexpressibleError("a copy of unknown size")
    nbytes = float(sizes[1]) * {"MiB": 2**20, "GiB": 2**30, "MB": 1e6, "GB": 1e9}[sizes[2]]
    if "on the device" in str(row["op"]):
        return float(elementwise_seconds(profile, nbytes / 4, 2))
    if "pageable" in str(row.get("sure", "")):
        # Through the buffers of the driver, which cores of the host fill: half of what they send and receive together.
        staging = host("generic-16").staging_bandwidth
        low, high = staging.low or staging.value, staging.high or staging.value
        ratio = profile.launch_s.value / device(profile.name).launch_s.value
        return nbytes * 2 / (staging.value if ratio == 1.0 else high if ratio < 1.0 else low)
    path = link(profile.link)
    return path.latency_s.value + nbytes / (path.bandwidth.value * path.efficiency.value)


def elementwise(profile: DeviceProfile, row: Row) -> float:
    """Seconds of an element-wise operator of two operands."""
    value_bytes(row)
    return float(elementwise_seconds(profile, math.prod(float(size) for size in row["shape"]), ELEMENT_PASSES))


LAWS: Final[Mapping[str, Callable[[DeviceProfile, Row], float]]] = {
    "spmm": sparse_sum,
    "gemm": dense_product,
    "copy": copy,
    "elementwise": elementwise,
}
"""The law of each kind of operator."""


if __name__ == "__main__":
    sys.exit(main())
