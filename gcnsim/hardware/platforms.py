"""Figures fitted to the published runs of one platform, which its datasheets do not contain.

Each represents a physical effect, and is fitted only to rows that are reserved for it (`use: calibrate`). Shares of the
memory bandwidth belong to a device and a family of kernels: platforms with the same device share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim.core import units
from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware.catalogue import DATA
from gcnsim.hardware.own_files import file_stamp
from gcnsim.hardware.tables import Figure, read_figure

FOLDER: Final = DATA / "platforms"
_FIGURES: Final = {
    "spmm_efficiency": units.FRACTION,
    "rate_beside_copies": units.FRACTION,
    "error": units.FRACTION,
}
_OPTIONAL: Final = {
    "stream_efficiency": units.FRACTION,
    "staging_bandwidth": units.BANDWIDTH,
    "operation_s": units.SECONDS,
    "unexplained_s": units.SECONDS,
}
_NOTHING: Final = Figure(0.0, "assumed", "not distinguished", "2026-11", 0.0, 0.0)
_SHARES: Final = ("spmm_efficiency", "stream_efficiency", "rate_beside_copies")


@dataclass(frozen=True, slots=True)
class Platform:
    """One published platform. device: the only one its figures apply to.

    spmm_efficiency: share of the memory bandwidth at which sparse sums read rows that are not in the device's cache.
    rate_beside_copies: relative speed of the GPU during transfers. error: half the width of the expected 90 % interval,
    relative. stream_efficiency: share of the memory bandwidth at which column-wise products read entries in order;
    None: that of any stream. staging_bandwidth: bytes/s that the host side of one worker moves between its buffers and
    its peers', sent and received together; None: unlimited. operation_s: replaces its host's figure. unexplained_s:
    seconds of an iteration in fitted rows that no figure explains, added to the upper end of an interval.
    """

    name: str
    title: str
    device: str
    spmm_efficiency: Figure
    rate_beside_copies: Figure
    error: Figure
    stream_efficiency: Figure | None = None
    staging_bandwidth: Figure | None = None
    operation_s: Figure | None = None
    unexplained_s: Figure = _NOTHING


def platforms() -> tuple[str, ...]:
    """Names of the platforms with fitted figures, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def platform(name: str) -> Platform:
    """The bundled platform `name`, or the one in the file `name`, which ends in .yaml.

    Raises ScenarioError with the closest name if there is none, FileError for an unusable file. A changed file is read
    again.
    """
    return _platform(name, file_stamp(name))


@cache
def _platform(name: str, stamp: tuple[int, int]) -> Platform:
    if (found := known_name(name, platforms())) is not None:
        return read_platform(FOLDER / f"{found}.yaml")
    if name.endswith(".yaml"):
        return read_platform(name)
    raise ScenarioError(f"unknown platform {name!r}; {nearest(name, platforms())}")


def read_platform(path: str | Path) -> Platform:
    """The platform in the file at `path`. Raises FileError."""
    raw: Any = read_yaml(path)
    wanted = {"title", "device", *_FIGURES}
    if not isinstance(raw, dict) or raw.keys() - _OPTIONAL.keys() != wanted:
        raise FileError(
            f"{path}: a platform has the keys {', '.join(sorted(wanted))}, and may have {', '.join(_OPTIONAL)}"
        )
    quantities = _FIGURES | {key: quantity for key, quantity in _OPTIONAL.items() if key in raw}
    figures = {key: read_figure(raw[key], quantity, f"{path}, {key}") for key, quantity in quantities.items()}
    for key in _SHARES:
        if key in figures and not 0.0 < figures[key].value <= 1.0:
            raise FileError(f"{path}, {key}: {raw[key]['value']} is not allowed; above 0% and at most 100%")
    return Platform(name=Path(path).stem, title=str(raw["title"]), device=str(raw["device"]), **figures)
