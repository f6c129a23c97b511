"""`python -m tests.fuzz`: mutated files into every reader of the registry; what is found, and the table of the attack.

    python -m tests.fuzz                             # every reader, 100,000 inputs (10,000 where a read takes 1 ms)
    python -m tests.fuzz --reader METIS --seconds 60
    python -m tests.fuzz --keep                      # findings go to tests/crashers, which the default run replays

The same seed makes the same inputs. Exit code 1 where anything is found. Results of each reader are kept in
`out/fuzz/SEED/NAME/told.json` and printed as a table; a reader that has reached its count is not run again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import nearest
from tests.fuzz.loop import attack
from tests.fuzz.readers import SLOW, room, rooms

ROOT: Final = Path(__file__).resolve().parents[2]
OUT: Final = ROOT / "out" / "fuzz"
CRASHERS: Final = ROOT / "tests" / "crashers"
MANY, FEW = 100_000, 10_000
"""Inputs of a reader; of one that takes longer than SLOW a read."""

SILENT_S: Final = 60.0
"""A process that says nothing for so long hangs where no alarm reaches it."""


@dataclass(slots=True)
class ReaderReport:
    """What the attack on a reader came to. reading_s: of the processor, in the reader; seconds: in all."""

    reader: str
    inputs: int = 0
    reading_s: float = 0.0
    seconds: float = 0.0
    killed: int = 0
    findings: tuple[str, ...] = ()

    @property
    def goal(self) -> int:
        """Inputs asked for."""
        return FEW if self.inputs and self.reading_s / self.inputs > SLOW else MANY


def hunted(name: str, seed: int, seconds: float, most: int | None) -> ReaderReport:
    """Attack a reader until it has had enough inputs or `seconds` have passed, processes that die replaced."""
    place = OUT / str(seed) / "".join(item if item.isalnum() else "-" for item in name)
    place.mkdir(parents=True, exist_ok=True)
    file = place / "told.json"
    result = ReaderReport(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else ReaderReport(name)
    end = time.monotonic() + seconds
    while time.monotonic() < end and result.inputs < (most or result.goal):
        # The first ones tell how long a read takes.
        last = min(most or result.goal, FEW) if result.inputs < FEW else most or result.goal
        _round(result, place, seed, last, end - time.monotonic())
        result.findings = tuple(sorted(_found(place)))
        file.write_text(json.dumps(asdict(result)), encoding="utf-8")
    return result


def _round(reader_report: ReaderReport, place: Path, seed: int, last: int, seconds: float) -> None:
    """One process, which reads inputs from where `reader_report` is to `last`."""
    (place / "current").write_bytes(b"%020d" % reader_report.inputs)
    words = [
        rooms()[reader_report.reader],
        reader_report.reader,
        str(seed),
        str(reader_report.inputs),
        str(last),
        str(seconds),
        str(place),
    ]
    command = [sys.executable, "-m", "tests.fuzz", "--one", *words]
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    out, err = _watched(process, place / "current")
    text = [json.loads(line) for line in out.splitlines()]
    final: dict[str, Any] = text[-1] if text else {"inputs": 0, "reading_s": 0.0}
    reader_report.seconds += time.monotonic() - begun
    reader_report.reading_s += final["reading_s"]
    if process.returncode == 0:
        reader_report.inputs += final["inputs"]
        return
    at = int((place / "current").read_bytes())
    if at == reader_report.inputs and not text and process.returncode > 0:
        raise SystemExit(f"{reader_report.reader}: {err.strip()[-2000:]}")
    reader_report.killed += 1
    reader_report.inputs = at + 1
    findings = place / "findings" / f"killed-{at}"
    findings.mkdir(parents=True, exist_ok=True)
    about = {"wrong": f"the process ended with {process.returncode} at input {at}", "number": at, "stderr": err[-2000:]}
    (findings / "what.json").write_text(json.dumps(about), encoding="utf-8")


def _watched(process: subprocess.Popen[str], current: Path) -> tuple[str, str]:
    """What the process wrote, once it has ended; it is killed where no input ends for SILENT_S."""
    last, since = b"", time.monotonic()
    while True:
        try:
            return process.communicate(timeout=1.0)
        except subprocess.TimeoutExpired:
            now = current.read_bytes()
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > SILENT_S:
                process.kill()


def _found(place: Path) -> Iterator[str]:
    for path in (place / "findings").glob("*/what.json"):
        yield str(json.loads(path.read_text(encoding="utf-8"))["wrong"])


def table(rows: Sequence[ReaderReport], mended: Mapping[str, int]) -> str:
    """The rows as Markdown; mended: findings that are kept as crashers, by reader."""
    lines = ["| reader | inputs | seconds | findings | mended |", "|---|---|---|---|---|"]
    for row in rows:
        done = mended.get(row.reader, 0)
        counts = f"{row.inputs:,} | {row.seconds:.0f} | {done + len(row.findings)} | {done}"
        lines.append(f"| {row.reader} | {counts} |")
    whole, seconds = sum(row.inputs for row in rows), sum(row.seconds for row in rows)
    done = sum(mended.get(row.reader, 0) for row in rows)
    found = done + sum(len(row.findings) for row in rows)
    lines.append(f"| all {len(rows)} | {whole:,} | {seconds:,.0f} | {found} | {done} |")
    return "\n".join(lines)


def kept() -> dict[str, int]:
    """Crashers by reader."""
    found: dict[str, int] = {}
    for path in sorted(CRASHERS.glob("*/what.json")):
        name = json.loads(path.read_text(encoding="utf-8"))["reader"]
        found[name] = found.get(name, 0) + 1
    return found


def keep(row: ReaderReport, seed: int) -> None:
    """Copy what was found to tests/crashers."""
    short = "".join(item if item.isalnum() else "-" for item in row.reader)
    for place in sorted((OUT / str(seed) / short / "findings").glob("*/what.json")):
        about: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
        if "seed_file" not in about:
            continue
        target = CRASHERS / f"{short}-{place.parent.name}"[:120]
        if not target.exists():
            shutil.copytree(place.parent / str(about["seed_file"]), target / "files")
            content = {"reader": row.reader, "input": about["seed_file"], "was": about["wrong"]}
            (target / "what.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack the readers and print the table; 1 where anything is found."""
    parser = argparse.ArgumentParser(
        prog="tests.fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reader", action="append", metavar="NAME", help="this one only")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for each reader")
    parser.add_argument("--inputs", type=int, help=f"for each reader ({MANY}, or {FEW} where a read takes {SLOW:g} s)")
    parser.add_argument("--seed", type=int, default=0, help="of all inputs")
    parser.add_argument("--jobs", type=int, default=1, help="readers at once")
    parser.add_argument("--keep", action="store_true", help="findings go to tests/crashers")
    parser.add_argument("--one", nargs=7, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        where, name, seed, first, last, seconds, out = given.one
        attack(room(where)[name], int(seed), int(first), int(last), float(seconds), Path(out))
        return 0
    word = given.reader or list(rooms())
    if unknown := next((item for item in word if item not in rooms()), None):
        parser.error(f"--reader: {nearest(unknown, rooms())}")
    rows = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in pool.map(lambda name: hunted(name, given.seed, given.seconds, given.inputs), word):
            rows.append(row)
            sys.stderr.write(
                f"{row.reader}: {row.inputs:,} inputs, {row.seconds:.0f} s, {len(row.findings)} findings\n"
            )
            for finding in row.findings:
                sys.stderr.write(f"    {finding}\n")
            if given.keep:
                keep(row, given.seed)
    sys.stdout.write(f"{table(rows, kept())}\n")
    return 1 if any(row.findings for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
