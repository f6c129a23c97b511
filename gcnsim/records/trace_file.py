"""One file that `torch.profiler` exported (`export_chrome_trace`): what ran when, on which thread or GPU.

Of its events these count: operators and named ranges on the CPU, launches, and kernels, copies and fills of GPUs. A
kernel belongs to the range in which it was launched, by the correlation that the profiler writes; else its name says
what it is (`gcnsim.records.trace_names`). Times are microseconds in the file, of one clock per file.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.records.trace_events import Progress, TraceEvents, shown
from gcnsim.records.trace_repair import Mend

STEP: Final = re.compile(r"ProfilerStep#(\d{1,9})\Z")

CATEGORIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("cpu_op", "operator"), "op"),
    "user_annotation": "range",
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "hip_runtime", "runtime"), "launch"),
    "kernel": "kernel",
    **dict.fromkeys(("gpu_memcpy", "memcpy", "gpu_memset", "memset"), "copy"),
}
"""What a category of an event is read as, in older names too; others (Python functions, flows) are left out."""

ON_DEVICE: Final = ("kernel", "copy")
LONGEST_US: Final = 1e18
"""No time is larger: thirty thousand years."""

MOST: Final = 20_000_000
"""Events kept of one file."""

READ: Final = frozenset(
    ("ph", "cat", "name", "pid", "tid", "ts", "dur", "device", "stream", "correlation", "bytes", "Collective name")
)
"""Keys of an event that counts; a value of theirs is never made up."""

READ_OF_ALL: Final = frozenset(("ph", "cat"))
READ_OF_HEADER: Final = frozenset(("distributedInfo", "rank", "world_size"))
"""The same of every event, and of what stands beside them."""

NONE: Final = -1


@dataclass(slots=True)
class EventColumn:
    """Events of one sort while they are read, a value per event; `done` makes arrays of them.

    start_us, lasted_us; name and place: positions in `TraceFile.names` and `places`; link: correlation of a launch and
    what it launched, -1 without; nbytes.
    """

    start_us: array[float] = field(default_factory=lambda: array("d"))
    lasted_us: array[float] = field(default_factory=lambda: array("d"))
    name: array[int] = field(default_factory=lambda: array("q"))
    place: array[int] = field(default_factory=lambda: array("q"))
    link: array[int] = field(default_factory=lambda: array("q"))
    nbytes: array[float] = field(default_factory=lambda: array("d"))

    def done(self) -> Events:
        """The same, as arrays in the order of their starts; of equal ones the longest first."""
        columns = [np.array(getattr(self, name)) for name in EventColumn.__slots__]
        order = np.lexsort((-columns[1], columns[0]))
        return Events(*(column[order] for column in columns))


@dataclass(frozen=True, slots=True)
class Events:
    """Events of one sort by their starts, a value per event in each array; as `EventColumn`."""

    start_us: FloatArray
    lasted_us: FloatArray
    name: AnyArray
    place: AnyArray
    link: AnyArray
    nbytes: FloatArray

    @property
    def end_us(self) -> FloatArray:
        """When each ended."""
        found: FloatArray = self.start_us + self.lasted_us
        return found

    def chosen(self, mask: BoolArray) -> Events:
        """Those of the mask."""
        return Events(*(getattr(self, name)[mask] for name in Events.__slots__))


@dataclass(frozen=True, slots=True)
class TraceFile:
    """What one file holds. rank: by the file's own word, None where it has none; world: how many there were, likewise.

    sorts: by `op`, `range`, `launch`, `kernel` and `copy`. names: of events. places: threads as ("cpu", process,
    thread), streams of GPUs as ("gpu", GPU, stream). devices: names of GPUs by their numbers. mended: what
    was, in a sentence.
    """

    path: Path
    rank: int | None
    world: int | None
    sorts: Mapping[str, Events]
    names: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]
    devices: Mapping[str, str]
    mended: str

    def steps(self) -> dict[int, int]:
        """Positions among `range` and `op` events that are the profiler's steps: by number, the position of a range."""
        found: dict[int, int] = {}
        events = self.sorts["range"]
        numbers = {index: int(match[1]) for index, name in enumerate(self.names) if (match := STEP.match(name))}
        for position in np.flatnonzero(np.isin(events.name, list(numbers))).tolist():
            number = numbers[int(events.name[position])]
            if number in found:
                raise FileError(f"{self.path}: ProfilerStep#{number} is there twice; allowed: once in a file")
            found[number] = position
        return found


def read_trace_file(path: str | Path, progress: Progress = lambda _: None) -> TraceFile:
    """The trace in the file at `path`, gzip or not.

    Raises FileError, naming the file and the event, for what is no such trace, and for times that are none.
    """
    events = TraceEvents(path, progress)
    reading = _EventReader(Path(path))
    for number, event in enumerate(events):
        counts = reading.add(number, event)
        if events.mended:
            where = f"{path}: event {number} ({shown(event.get('name'))})"
            _check(where, events.mended, READ if counts else READ_OF_ALL)
    _check(f"{path}: its header", events.header_mended, READ_OF_HEADER)
    about = events.header.get("distributedInfo")
    numbers = [about.get(key) if isinstance(about, dict) else None for key in ("rank", "world_size")]
    rank, world = (value if type(value) is int and value >= 0 else None for value in numbers)
    return TraceFile(
        path=Path(path),
        rank=rank,
        world=world,
        sorts={sort: column.done() for sort, column in reading.sorts.items()},
        names=tuple(reading.names),
        places=tuple(reading.places),
        devices=_devices(events.header.get("deviceProperties")),
        mended=events.mended_text(),
    )


def _check(where: str, mended: Sequence[Mend], read: frozenset[str]) -> None:
    """Refuse a mended value under a key that is read."""
    for mend in mended:
        if mend.key in read:
            raise FileError(f"{where}: {mend.what}, which is read; allowed: a value (mend it there, or record again)")


def _devices(value: Any) -> dict[str, str]:
    listed = value if isinstance(value, list) else []
    return {str(item.get("id")): str(item.get("name")) for item in listed if isinstance(item, dict)}


class _EventReader:
    """The events of a file as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: dict[str, int] = {}
        self.places: dict[tuple[str, str, str], int] = {}
        self.sorts = {sort: EventColumn() for sort in dict.fromkeys(CATEGORIES.values())}
        self._kept = 0

    def add(self, number: int, event: Mapping[str, Any]) -> bool:
        """Keep an event if it counts; whether it does. Raises FileError for one whose name or times are none."""
        category = event.get("cat")
        sort = CATEGORIES.get(category.lower()) if isinstance(category, str) else None
        if sort is None or event.get("ph") != "X":
            return False
        name, args = event.get("name"), event.get("args")
        if not isinstance(name, str):
            raise FileError(f"{self.path}: event {number}: name is {shown(name)}; allowed: text")
        arguments: Mapping[str, Any] = args if isinstance(args, dict) else {}
        start, lasted = (self._time(number, name, key, event) for key in ("ts", "dur"))
        if sort == "op" and STEP.match(name):
            sort = "range"
        on_device = sort in ON_DEVICE
        process, thread = str(event.get("pid")), str(event.get("tid"))
        place = ("cpu", process, thread)
        if on_device:
            place = ("gpu", str(arguments.get("device", process)), str(arguments.get("stream", thread)))
            name = _collective(name, arguments)
        column = self.sorts[sort]
        column.start_us.append(start)
        column.lasted_us.append(lasted)
        column.name.append(self.names.setdefault(name, len(self.names)))
        column.place.append(self.places.setdefault(place, len(self.places)))
        column.link.append(_whole(arguments.get("correlation")))
        column.nbytes.append(_bytes(arguments) if on_device else 0.0)
        self._kept += 1
        if self._kept > MOST:
            raise FileError(f"{self.path}: more than {MOST:,} events; allowed: fewer (profile fewer iterations)")
        return True

    def _time(self, number: int, name: str, key: str, event: Mapping[str, Any]) -> float:
        value = event.get(key)
        least = 0 if key == "dur" else -LONGEST_US
        # Comparison is exact for whole numbers of any length, and false for NaN.
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= LONGEST_US:
            return float(value)
        found = f"has no {key}" if value is None else f"{key} is {shown(value)}"
        allowed = "0 or more" if key == "dur" else "a number of"
        raise FileError(f"{self.path}: event {number} ({shown(name)}): {found}; allowed: {allowed} microseconds")


def _collective(name: str, arguments: Mapping[str, Any]) -> str:
    """The name of a kernel; where a collective's kernel has a general one, with what it carries out."""
    done = arguments.get("Collective name")
    return f"{name.partition('(')[0]} [{done}]" if isinstance(done, str) and done else name


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**62 else NONE


def _bytes(arguments: Mapping[str, Any]) -> float:
    value = arguments.get("bytes")
    return float(value) if type(value) is int and 0 <= value < 2**62 else 0.0
