"""The attack on one reader: mutated files, one after the other, under limits, in a process of its own.

Input number n of a reader follows from the seed, its name and n alone, so a process that dies is replaced by one that
goes on behind the input that killed it. Whatever a read does but succeed or raise one line of ours is a finding.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Final

from gcnsim.core.errors import GcnsimError
from tests.fuzz.mutate import mutated
from tests.fuzz.readers import Files, Reader

MEMORY_BYTES: Final = 3 << 30
"""Of address space, what the process holds already included."""

ALARM_S: Final = 5.0
"""A read may take so long."""

LINE: Final = 2_000
"""Characters of an error: more is no line that anybody reads."""

REPORT_S: Final = 2.0


class HungError(BaseException):
    """A read took longer than it may."""


def limit() -> None:
    """Limits of this process from now on: memory, and an alarm that raises. Warnings are errors."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _late)
    warnings.simplefilter("error")


def _late(number: int, frame: FrameType | None) -> None:
    raise HungError(f"longer than {ALARM_S:g} s")


def attempt(reader: Reader, folder: Path) -> str | None:
    """What is wrong with how `reader` takes the files in `folder`: kind and place of what it raised; None: nothing."""
    signal.setitimer(signal.ITIMER_REAL, ALARM_S)
    try:
        reader.read(folder)
    except GcnsimError as error:
        wrong = _wrong_line(str(error))
        return None if wrong is None else f"{wrong}, at {_place(error)}"
    except (HungError, Exception) as error:
        return f"{type(error).__name__} at {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return None


def _wrong_line(text: str) -> str | None:
    if not text or "\n" in text or "\r" in text:
        return "an error that is not one line"
    return f"an error of more than {LINE} characters" if len(text) > LINE else None


def _place(error: BaseException) -> str:
    """The innermost function of ours, and the function that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/gcnsim/" in frame.filename or "/runtime/" in frame.filename]
    last = ours[-1] if ours else frames[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.name}"


def made(reader: Reader, seeds: list[Files], seed: int, number: int) -> tuple[int, dict[str, bytes]]:
    """Input `number`: which of the valid inputs it comes from, and the files of it that are changed."""
    draw = random.Random(f"{seed}/{reader.name}/{number}")
    which = draw.randrange(len(seeds))
    valid = seeds[which]
    names = sorted(name for name in valid if not reader.fixed(name))
    found = {}
    for name in draw.sample(names, min(len(names), draw.choice((1, 1, 1, 2)))):
        found[name] = mutated(valid[name], draw)
    return which, reader.sealed({**valid, **found}, found, draw)


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """The files below `folder`."""
    for name, content in files.items():
        place = folder / name
        if not place.parent.is_dir():
            place.parent.mkdir(parents=True)
        place.write_bytes(content)


def attack(reader: Reader, seed: int, first: int, most: int, seconds: float, out: Path) -> None:
    """Inputs from number `first` to `most` for `seconds` at most; a JSON line each REPORT_S and at the end.

    out: a folder; `current` in it holds the number of the input that is being read, and findings lie below it.
    """
    with tempfile.TemporaryDirectory(prefix="gcnsim-fuzz-", dir=_quick()) as home:
        seeds = reader.seeds(Path(home, "seeds"))
        places = [Path(home, str(which)) for which in range(len(seeds))]
        for place, files in zip(places, seeds, strict=True):
            place.mkdir()
            write(place, files)
            if wrong := attempt(reader, place):
                raise SystemExit(f"{reader.name}: a valid input fails: {wrong}")
        limit()
        known: dict[str, int] = {}
        spent, number, begun, content = 0.0, first, time.monotonic(), time.monotonic()
        with open(out / "current", "r+b") as current:
            for number in range(first, most):
                if (now := time.monotonic()) - content > REPORT_S:
                    _tell(number - first, spent, now - begun)
                    content = now
                    if now - begun > seconds:
                        break
                current.seek(0)
                current.write(b"%020d" % number)
                current.flush()
                which, files = made(reader, seeds, seed, number)
                write(places[which], files)
                start = time.process_time()
                wrong = attempt(reader, places[which])
                spent += time.process_time() - start
                if wrong is not None:
                    keep(out, wrong, which, files, known)
                again = seeds[which] if reader.writes else files
                write(places[which], {name: seeds[which][name] for name in again})
            else:
                number = most
    _tell(number - first, spent, time.monotonic() - begun)


def keep(out: Path, wrong: str, which: int, files: Mapping[str, bytes], known: dict[str, int]) -> None:
    """Keep an input that finds `wrong`, unless a smaller one is kept; `known` has their sizes."""
    size = sum(map(len, files.values()))
    if known.get(wrong, MEMORY_BYTES) <= size:
        return
    known[wrong] = size
    name = "".join(item if item.isalnum() else "-" for item in wrong)[:120]
    place = out / "findings" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "what.json").write_text(json.dumps({"wrong": wrong, "seed_file": which}), encoding="utf-8")
    write(place / f"{which}", files)


def _tell(inputs: int, spent: float, wall: float) -> None:
    sys.stdout.write(json.dumps({"inputs": inputs, "reading_s": spent, "seconds": wall}) + "\n")
    sys.stdout.flush()


def _quick() -> str | None:
    """A folder in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
