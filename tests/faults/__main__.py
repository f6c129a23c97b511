"""`python -m tests.faults`: what is done to trainings and to commands that write, and how each ends; prints the table.

    python -m tests.faults                       # all, some 15 minutes; needs root, ip and tc for the emulated ones
    python -m tests.faults --only SIGKILL        # those whose name has this
    python -m tests.faults --kills 20            # moments at which every writing command is killed

Exit code 1 where anything is not as it is documented. Results are kept in `out/faults.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from runtime.emulation.network import refused
from tests.faults.cases import CASES
from tests.faults.training import LIMIT_S, Alone, BrokenError
from tests.faults.writers import kill_writers

OUT: Final = Path(__file__).resolve().parents[2] / "out"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one fault ended. seconds: until it had ended or went on. wrong: what is not as documented; None: nothing."""

    name: str
    place: str
    told: str
    seconds: float
    wrong: str | None


def table(rows: Sequence[Outcome]) -> str:
    """The rows as Markdown."""
    lines = ["| fault | where | as documented | seconds | found |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.place} | {row.told} | {row.seconds:.1f} | {row.wrong or 'so it is'} |" for row in rows
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do everything that is asked for; 1 where something is not as documented."""
    parser = argparse.ArgumentParser(
        prog="tests.faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="faults whose name has this text")
    parser.add_argument("--place", default="", choices=("", "plain", "emulated", "commands"), help="only there")
    parser.add_argument("--kills", type=int, default=5, help="of each writing command")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    given = parser.parse_args(arguments)
    os.environ["GCNSIM_COMPILE"] = "no"
    why, rows = refused(), []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        alone = Alone(Path(folder, "alone"))
        for number, case in enumerate(CASES):
            if given.only not in case.name or given.place not in ("", case.place):
                continue
            if case.place == "emulated" and why is not None:
                sys.stderr.write(f"{case.name}, emulated: not here: {why}\n")
                continue
            wrong, seconds = None, 0.0
            try:
                seconds = case.strike(Path(folder, str(number)), alone)
            except (BrokenError, AssertionError) as error:
                wrong = " ".join(str(error).split())
            if wrong is None and seconds > LIMIT_S:
                wrong = f"more than {LIMIT_S:g} s"
            rows.append(Outcome(case.name, case.place, case.told, seconds, wrong))
            sys.stderr.write(f"{case.name}, {case.place}: {wrong or f'{seconds:.1f} s'}\n")
        if given.place in ("", "commands"):
            for name, kills, seconds, wrong in kill_writers(
                Path(folder, "writers"), given.kills, given.seed, given.only
            ):
                text = f"{kills} kills: whole or not there, written again the same"
                rows.append(Outcome(f"`{name}` SIGKILL at random", "commands", text, seconds, wrong))
                sys.stderr.write(f"{name}: {wrong or 'whole'}\n")
    OUT.mkdir(exist_ok=True)
    (OUT / "faults.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{table(rows)}\n")
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
