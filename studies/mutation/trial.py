"""One mutant in a copy of the tree: which of its room's tests run, and whether one of them fails."""

from __future__ import annotations

import difflib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from studies.mutation.kinds import Mutation
from studies.mutation.plugin import PATIENCE_S
from studies.mutation.rooms import digest, room_of, room_tests, sources

SLOWER = 6.0
"""How many times as long as it took a test may compute before it fails."""
MOST_S = 300.0
"""Seconds for any set of tests, and SLOWER times as long as its tests may compute: enough on a busy machine."""
QUICK_S = 60.0
"""All tests of a room that takes no longer than that are run before a mutant survives."""
MEMORY = 12 << 30
"""Bytes of a mutant's data: one that asks for more is killed by its MemoryError, not by the machine."""

Outcome = Literal["killed", "late", "broken", "survived", "untested"]
OUTCOMES: Mapping[int | None, Outcome] = {None: "late", 0: "survived", 5: "untested"}
"""By the exit code of pytest where no test has failed; with any other one nothing could be imported."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant.

    by: the test that failed; tests: how many run its line; seconds: of the trial; digest: of the room then.
    """

    mutation: Mutation
    room: str
    outcome: Outcome
    by: str
    tests: int
    seconds: float
    diff: str
    digest: str

    @property
    def killed(self) -> bool:
        """Whether the room's tests tell the mutant from the source."""
        return self.outcome in ("killed", "late", "broken")


class Copy:
    """A copy of the tree at `root` in `folder`: every file that git knows or would add."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, text=True, check=True
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.folder / name)
        self.request_path, self.report_path = folder / "asked.json", folder / "told"

    def pytest(self, question: dict[str, Any], files: list[str], limit_s: float | None, *more: str) -> int | None:
        """The exit code of pytest on `files` in the copy; None when it took longer than `limit_s`."""
        self.request_path.write_text(json.dumps(question), encoding="utf-8")
        env = os.environ | {"GCNSIM_MUTATION": str(self.request_path), "PYTHONPATH": str(self.folder)}
        env |= {"PYTHONDONTWRITEBYTECODE": "1"} if "order" in question else {}
        command = [sys.executable, "-m", "pytest", "-p", "studies.mutation.plugin", "-p", "no:cacheprovider"]
        command += ["-p", "no:randomly", *more, *files]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_bounded,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _end(process)

    def seen(self, room: str, store: Path, *, anew: bool = True) -> dict[str, Any]:
        """Seconds of the room's tests, those that fail unchanged, which lines each runs; stored for the next time.

        anew: look again where sources or tests have changed since.
        """
        files, tests = sources(self.folder)[room], room_tests(self.folder, room)
        present = digest(self.folder, room)
        stored = store / f"{room.replace('/', '.')}.json"
        known: dict[str, Any] = json.loads(stored.read_text(encoding="utf-8")) if stored.is_file() else {}
        if not known or (anew and known["digest"] != present):
            self.report_path.unlink(missing_ok=True)
            if tests:
                self.pytest({"seen": str(self.report_path), "sources": files}, tests, None)
            known = {"seconds": {}, "failed": [], "lines": {}}
            if self.report_path.exists():
                known = json.loads(self.report_path.read_text(encoding="utf-8"))
            known["digest"] = present
            store.mkdir(parents=True, exist_ok=True)
            stored.write_text(json.dumps(known), encoding="utf-8")
        return known

    def named(self, mutation: Mutation) -> Result | None:
        """The result where the tests named after the module kill the mutant; nothing is known of them before."""
        start, room = time.perf_counter(), room_of(mutation.path)
        stem = Path(mutation.path).stem
        files = [name for name in room_tests(self.folder, room) if Path(name).stem == f"test_{stem}"]
        if not files:
            return None
        question: dict[str, Any] = {"order": [], "known": [], "limit": {}, "told": str(self.report_path)}
        self.report_path.unlink(missing_ok=True)
        with self._changed(mutation) as diff:
            code = self.pytest(question, files, MOST_S, "-x")
        by = self.report_path.read_text(encoding="utf-8") if self.report_path.exists() else ""
        # A test that fails on the source too kills nothing.
        if code in (0, 5, None) or not by or self.pytest(question, [by], MOST_S) != 0:
            return None
        taken = time.perf_counter() - start
        return Result(mutation, room, "killed", by, 0, taken, diff, digest(self.folder, room))

    def tried(self, mutation: Mutation, seen: dict[str, Any], *, whole: bool) -> Result:
        """Run the tests that run its line, the quickest files first, then others: of quick rooms, or if `whole`."""
        start, room = time.perf_counter(), room_of(mutation.path)
        chosen, order = ordered(mutation, seen)
        if chosen and not whole and sum(seen["seconds"].values()) > QUICK_S:
            order = order[: len(chosen)]
        self.report_path.unlink(missing_ok=True)
        limits = {test: PATIENCE_S + SLOWER * seen["seconds"][test] for test in order}
        requested = {"order": order, "known": [*seen["seconds"]], "limit": limits, "told": str(self.report_path)}
        files = list(dict.fromkeys(test.split("::")[0] for test in order))
        if digest(self.folder, room) != seen["digest"]:
            files = room_tests(self.folder, room)  # some may be new
        with self._changed(mutation) as diff:
            code = self.pytest(requested, files, MOST_S + SLOWER * sum(limits.values()), "-x") if files else 5
        by = self.report_path.read_text(encoding="utf-8") if self.report_path.exists() else ""
        outcome = "killed" if by else OUTCOMES.get(code, "broken")
        taken = time.perf_counter() - start
        return Result(mutation, room, outcome, by, len(chosen), taken, diff, seen["digest"])

    @contextmanager
    def _changed(self, mutation: Mutation) -> Iterator[str]:
        """The mutant stands in the copy; its difference."""
        file = self.folder / mutation.path
        source, status = file.read_bytes(), file.stat()
        changed = mutation.applied(source)
        try:
            file.write_bytes(changed)
            yield _diff(mutation, source, changed)
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def ordered(mutation: Mutation, seen: dict[str, Any]) -> tuple[set[str], list[str]]:
    """Tests that run the mutant's line (all, where that is at import), and the order in which to run all."""
    seconds: dict[str, float] = {test: took for test, took in seen["seconds"].items() if test not in seen["failed"]}
    lines = seen["lines"].get(mutation.path, {})
    chosen = {test for line in range(mutation.first, mutation.last + 1) for test in lines.get(str(line), [])}
    chosen = chosen & set(seconds) if mutation.first else set(seconds)
    whole: dict[str, float] = {}
    for test in chosen or seconds:
        whole[test.split("::")[0]] = whole.get(test.split("::")[0], 0.0) + seconds[test]

    def key(test: str) -> tuple[bool, float, str, float]:
        file = test.split("::")[0]
        return test not in chosen, whole.get(file, 0.0), file, seconds[test]

    return chosen, sorted(seconds, key=key)


def _diff(mutation: Mutation, source: bytes, changed: bytes) -> str:
    lines = difflib.unified_diff(
        source.decode().splitlines(), changed.decode().splitlines(), mutation.path, mutation.path, lineterm="", n=0
    )
    return "\n".join(list(lines)[2:])


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the tests with all that they started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
