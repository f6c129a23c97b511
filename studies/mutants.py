"""How many small mistakes the tests notice: seeded mutations of the source, each against the tests of its room.

    python -m studies.mutants                 150 mutants of seed 0; results in out/mutants-0.json
    python -m studies.mutants --survivors     after new tests: only what survived is tried again
    python -m studies.mutants --whole         what survives is tried against every test of its room

Nothing in the working tree changes: mutants stand in a temporary copy. A mutant is killed when a test fails, when
nothing can be imported, or when a test takes much longer than it did. Tests named after its module come first,
then those that run its line, looked up where a mutant of the room is left. All of the room run where no test is seen
to run the line (worker processes, compiled code), where it runs at import, and, where the room takes at most a minute,
before it survives: what is computed once and kept belongs to the test that came first, so in other rooms a mutant may
survive that `--whole` kills. Results are written as they come; the same command goes on where it was interrupted, but
for rooms whose sources or tests have changed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import Queue

import click

from studies.mutation.equivalent import proof
from studies.mutation.kinds import Mutation
from studies.mutation.report import report
from studies.mutation.rooms import digest, places, room_of, sample
from studies.mutation.trial import Copy, Result

ROOT = Path(__file__).resolve().parents[1]
LEAST = 0.9


class Results:
    """Results by mutant, in a file; those that it holds count unless they are to be tried again."""

    def __init__(self, file: Path, *, survivors: bool, whole: bool) -> None:
        self.file, self.survivors, self.found = file, survivors, dict[Mutation, Result]()
        rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
        for row in rows:
            result = Result(**row | {"mutation": Mutation(**row["mutation"])})
            same = survivors or result.digest == digest(ROOT, result.room)
            if same and (result.killed or not (survivors or whole)):
                self.found[result.mutation] = result

    def add(self, result: Result) -> None:
        """Keep it, and say so."""
        self.found[result.mutation] = result
        rows = [asdict(self.found[item]) for item in sorted(self.found)]
        self.file.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        place = f"{result.mutation.path}:{result.mutation.line}"
        click.echo(f"{result.outcome:9} {result.seconds:5.1f} s  {result.mutation.kind:10} {place}", err=True)


def test(drawn: Sequence[Mutation], results: Results, jobs: int, *, whole: bool) -> None:
    """Try those of `drawn` without a result, room by room, `jobs` rooms side by side."""
    rooms: dict[str, list[Mutation]] = defaultdict(list)
    for mutation in drawn:
        if mutation not in results.found:
            rooms[room_of(mutation.path)].append(mutation)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: Queue[Copy] = Queue()
        for number in range(jobs):
            copies.put(Copy(ROOT, Path(folder) / str(number)))

        def one(room: str) -> None:
            copy = copies.get()
            left = []
            for mutation in rooms[room]:
                if (found := copy.named(mutation)) is not None:
                    results.add(found)
                else:
                    left.append(mutation)
            seen = copy.seen(room, results.file.parent / "mutants", anew=not results.survivors) if left else {}
            for mutation in left:
                results.add(copy.tried(mutation, seen, whole=whole))
            copies.put(copy)

        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, rooms))


@click.command()
@click.option("--count", default=150, show_default=True, help="How many mutants; every room has some.")
@click.option("--seed", default=0, show_default=True, help="Which are drawn.")
@click.option("--room", "only", multiple=True, help="Only mutants of this room, as gcnsim/cost; may be repeated.")
@click.option("--jobs", default=1, show_default=True, help="Rooms tested side by side.")
@click.option("--survivors", is_flag=True, help="Try only what survived the last time.")
@click.option("--whole", is_flag=True, help="Try what survives against every test of its room.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Results; by default out/mutants-SEED.json.")
def main(
    count: int, seed: int, only: tuple[str, ...], jobs: int, survivors: bool, whole: bool, file: Path | None
) -> None:
    """Make COUNT small mutations, run the tests of their rooms, and report how many are killed."""
    drawn = [item for item in sample(places(ROOT), count, seed) if not only or room_of(item.path) in only]
    proved = {item: proof(ROOT, item) for item in drawn}
    drawn = [item for item in drawn if proved[item] is None]
    file = file or ROOT / "out" / f"mutants-{seed}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    results = Results(file, survivors=survivors, whole=whole)
    test(drawn, results, jobs, whole=whole)
    found = [results.found[item] for item in drawn]
    click.echo(report(found))
    for key, why in proved.items():
        if why is not None:
            click.echo(f"not counted: {key.path}:{key.line} {key.kind}: {why}")
    sys.exit(sum(item.killed for item in found) < LEAST * len(found))


if __name__ == "__main__":
    main()
