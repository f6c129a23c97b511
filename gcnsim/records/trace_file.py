"""One file that `torch.profiler` exported (`export_chrome_trace`): what ran when, on which thread or GPU.

Of its events these count: operators and named ranges on the CPU, launches, and kernels, copies and fills of GPUs. A
kernel belongs to the range in which it was launched, by the correlation that the profiler writes; else its name says
what it is (`gcnsim.records.trace_names`). Times are microseconds in the file, of one clock per file.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.records.trace_events import Progress, TraceEvents, shown

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

OVERLAP_US: Final = 50.0
"""Events of one stream are serial; kernels that are launched before the end of another overlap by some microseconds."""

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
    thread), streams of GPUs as ("gpu", GPU, stream). devices: names of GPUs by their numbers. notes: remarks
    for readers.
    """

    path: Path
    rank: int | None
    world: int | None
    sorts: Mapping[str, Events]
    names: tuple[str, ...]
    places: tuple[tuple[str, str, str], ...]
    devices: Mapping[str, str]
    notes: tuple[str, ...]

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
        reading.add(number, event)
    about = events.header.get("distributedInfo")
    numbers = [about.get(key) if isinstance(about, dict) else None for key in ("rank", "world_size")]
    rank, world = (value if type(value) is int and value >= 0 else None for value in numbers)
    sorts, notes = reading.done()
    return TraceFile(
        path=Path(path),
        rank=rank,
        world=world,
        sorts=sorts,
        names=tuple(reading.names),
        places=tuple(reading.places),
        devices=_devices(events.header.get("deviceProperties")),
        notes=notes,
    )


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

    def add(self, number: int, event: Mapping[str, Any]) -> None:
        """Keep an event if it counts. Raises FileError for one whose name or times are none."""
        category = event.get("cat")
        sort = CATEGORIES.get(category.lower()) if isinstance(category, str) else None
        if sort is None or event.get("ph") != "X":
            return
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

    def done(self) -> tuple[dict[str, Events], tuple[str, ...]]:
        """The events by their sorts, those of a stream cut at the next one's start; and a note on what was cut."""
        sorts = {sort: column.done() for sort, column in self.sorts.items()}
        mine = [sorts[sort] for sort in ON_DEVICE]
        place, start, lasted, name = (
            np.concatenate([getattr(events, field) for events in mine])
            for field in ("place", "start_us", "lasted_us", "name")
        )
        begins = _next_starts(place, start)
        over = start + lasted - begins
        wrong = np.flatnonzero(over > OVERLAP_US)
        if not wrong.size:
            return sorts, ()
        lasted[wrong] = (begins - start)[wrong]
        pieces = np.split(lasted, np.cumsum([events.name.size for events in mine])[:-1])
        sorts |= {
            sort: replace(events, lasted_us=piece) for sort, events, piece in zip(ON_DEVICE, mine, pieces, strict=True)
        }
        most = wrong[np.argmax(over[wrong])]
        _, gpu, stream = [*self.places][place[most]]
        others = f" (and {wrong.size - 1:,} more)" if wrong.size > 1 else ""
        return sorts, (
            f"{self.path.name}: {shown([*self.names][name[most]])} at {start[most]:.1f} us on stream {stream} of GPU "
            f"{gpu} overlaps the next event of its stream by {over[most] / 1e3:,.1f} ms{others}: a doubtful duration, "
            "so it counts up to the next event",
        )

    def _time(self, number: int, name: str, key: str, event: Mapping[str, Any]) -> float:
        value = event.get(key)
        least = 0 if key == "dur" else -LONGEST_US
        # Comparison is exact for whole numbers of any length, and false for NaN.
        if isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= LONGEST_US:
            return float(value)
        found = f"has no {key}" if value is None else f"{key} is {shown(value)}"
        allowed = "0 or more" if key == "dur" else "a number of"
        raise FileError(f"{self.path}: event {number} ({shown(name)}): {found}; allowed: {allowed} microseconds")


def _next_starts(place: AnyArray, start: FloatArray) -> FloatArray:
    """When the next event of the same place begins, later than this one; infinity after the last one."""
    found = np.full(start.size, np.inf)
    if not start.size:
        return found
    order = np.lexsort((start, place))
    places, starts = place[order], start[order]
    new = np.r_[True, (places[1:] != places[:-1]) | (starts[1:] != starts[:-1])]
    first = np.flatnonzero(new)
    same = places[first[1:]] == places[first[:-1]]
    following = np.r_[np.where(same, starts[first[1:]], np.inf), np.inf]
    found[order] = following[np.cumsum(new) - 1]
    return found


def _collective(name: str, arguments: Mapping[str, Any]) -> str:
    """The name of a kernel; where a collective's kernel has a general one, with what it carries out."""
    done = arguments.get("Collective name")
    return f"{name.partition('(')[0]} [{done}]" if isinstance(done, str) and done else name


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**62 else NONE


def _bytes(arguments: Mapping[str, Any]) -> float:
    value = arguments.get("bytes")
    return float(value) if type(value) is int and 0 <= value < 2**62 else 0.0
