"""The folder of a survey: its contents, its progress, and its final file. Only worker 0 uses it.

A run is trained in `unfinished/` and moved to `runs/` as a whole, so an interrupted survey leaves no incomplete run
there. `survey.json` describes the survey; a resumed one must have the same rule and cluster.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import Seconds
from gcnsim.core.json_files import read_json
from gcnsim.core.shapes import SINCE, Amount, As, OneOrMore, Positive
from gcnsim.core.units import BANDWIDTH
from gcnsim.records.run_files import CLUSTER, Cluster, write_cluster
from runtime.record import read_run
from runtime.survey.rule import GRAPHS, RUNS, STATE, UNFINISHED, PlannedRun, SurveyRequest

_TEXT: Final = """\
# Survey of a cluster

Made by `python -m runtime.survey` in {minutes:.1f} minutes, with {versions}.

{servers} x {each} workers on {device}{emulated}:

| server | cpu | cores | memory | gpus |
|---|---|---|---|---|
{hardware}
{between}
Runs for a calibration: {seen}. Held out: {judged}. `rule.yaml`, written before they ran, says which is which.

## Calibrate and validate

In this folder:

```sh
{afterwards}
```

## Send it back

In the folder above this one, without the graphs, which can be generated again:

```sh
{pack}
```

Attach the archive to an issue of the gcnsim project, or link to it there. It contains measurements, hardware
names and software versions (the table below). It does not contain {untold}.
You can inspect it: all files except `access.trace`, `*.parquet`, `*.npz` and `*.bin` are text. How it is used:
`docs/contribute_measurements.md`.

## What is here

| what | content |
|---|---|
| `profile.json` | kernels of the first server's GPUs, and transfers: between servers where there are several |
| `runs/` | each run as `runtime.train` records it, its access trace, and the cluster it ran on (`cluster.json`) |
| `graphs/` | the made-up graphs that were trained; neither of the two commands needs them |
| `survey.json` | servers, versions, what was measured between servers, seconds of each run, what was left out |
| `rule.yaml` | the rule that said what to train |
| `SHA256SUMS` | of every file but the graphs |

## Left out

{dropped}
"""

NOT_TOLD: Final = "names of servers, users and networks, addresses, your data, paths other than those typed"
"""What a folder says nothing of."""


def commands(runs: Sequence[str], out: Path, device: str) -> list[str]:
    """What to do with a survey in its folder `out`, as it was typed. runs: the names of those that are there.

    Its hashes; of CPU cores the compute times of the parts that runs trained, measured where the survey was started; a
    calibration by the runs that one may see, the judgement of all others; last, in the folder above, the one file that
    is sent back.
    """
    measures, measured = [], ""
    if device == "cpu":
        # Where paths of graphs are as they were typed.
        typed = Path() if out.is_absolute() else out
        words = ["python", "-m", "runtime.measure", "--runs", str(typed / RUNS), "--out", str(typed / MEASURED)]
        line, where = shlex.join(words), "/".join(".." for _ in typed.parts)
        measures, measured = [f"(cd {where} && {line})" if where else line], f" --measured-compute {MEASURED}"
    run_options = "".join(f"--runs {RUNS}/{name} " for name in runs if name.startswith("calibration-"))
    name = shlex.quote(out.resolve().name)
    return [
        "sha256sum --check --quiet SHA256SUMS",
        *measures,
        f"gcnsim calibrate profile.json {run_options}--out calibration.json{measured}",
        f"gcnsim validate {RUNS}/held-out-* --calibration calibration.json --out report{measured}",
        f"tar -czf {name}.tar.gz --exclude={GRAPHS} {name}",
    ]


def readme(state: Mapping[str, Any], runs: Sequence[str], out: Path) -> str:
    """README.md. state: of survey.json; runs: the names of those that are there; out: the folder as it was typed."""
    *afterwards, pack = commands(runs, out, state["device"])
    seen = [name for name in runs if name.startswith("calibration-")]
    versions = ", ".join(f"{name} {version}" for name, version in state["versions"].items())
    return _TEXT.format(
        minutes=state["minutes"],
        versions=versions,
        servers=len(state["servers"]),
        each=state["workers"] // len(state["servers"]),
        device=state["device"],
        emulated=_emulated(state["emulated"]),
        hardware="\n".join(_row(number, server) for number, server in enumerate(state["servers"])),
        between=_between(state["cluster"]),
        seen=len(seen),
        judged=len(runs) - len(seen),
        afterwards="\n".join(afterwards),
        pack=pack,
        untold=NOT_TOLD,
        dropped=_dropped(state["dropped"], state["failed"]),
    )


def _emulated(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return ""
    waits = f"; waits replace {facts['accelerator']}, nothing computed" if "accelerator" in facts else ""
    return f", emulated on one machine{waits}"


def _row(number: int, server: Mapping[str, Any]) -> str:
    gpus = ", ".join(server["gpus"]) or "-"
    return f"| {number} | {server['cpu']} | {server['cores']} | {server['memory_bytes'] / 2**30:.0f} GiB | {gpus} |"


def _between(cluster: Mapping[str, Any] | None) -> str:
    """The measured network rates in a paragraph; empty on a single server."""
    if cluster is None:
        return ""
    return (
        f"\nBetween servers {BANDWIDTH.shown_as(cluster['measured'])} of payload were measured, all sending at once; "
        f"the link counts as {8e-6 * cluster['bandwidth']:.0f} Mbit/s.\n"
    )


def _dropped(names: Sequence[str], failed: Mapping[str, str]) -> str:
    short = [name for name in names if name not in failed]
    found = []
    if short:
        found.append(
            f"{len(short)} runs of the rule, because time was short or the survey was stopped: {', '.join(short)}."
        )
    if failed:
        found.append(f"Failed: {', '.join(f'{name} ({kind})' for name, kind in failed.items())}.")
    return "\n\n".join(found) or "Nothing."


SCHEMA: Final = "gcnsim.survey/1"
MICROBENCH, RULE, README, SUMS = "profile.json", "rule.yaml", "README.md", "SHA256SUMS"
MEASURED: Final = "measured"
FAILED: Final = "failed."


@dataclass(frozen=True, slots=True)
class SurveyState:
    """What a survey measured and trained so far, `survey.json` in the folder that `python -m runtime.survey` writes."""

    MAY_SAY_MORE: ClassVar = True

    rule: str
    """SHA-256 of the rule's file."""
    device: str
    workers: OneOrMore
    servers: Sequence[Mapping[str, Any]]
    """Hardware of each."""
    versions: Mapping[str, str]
    bandwidth: Positive | None
    """Bytes/s of a server's link, as asked for; null: as measured."""
    emulated: bool | Mapping[str, Any] | None
    cluster: Annotated[Mapping[str, Any] | None, As(Cluster | None)]
    """As cluster.json of a run; null: not measured, or one server."""
    runs: Mapping[str, Seconds]
    """Seconds that each finished run took, start-up included."""
    dropped: Sequence[str]
    """Runs of the rule that are not there."""
    failed: Mapping[str, str] = field(metadata=SINCE)
    """What kind of error ended each run that failed; left out by older surveys."""
    minutes: Amount
    finished: bool


class SurveyFolder:
    """A survey's folder, new or to be resumed.

    took: seconds of each finished run, by name. failed: the kind of error of each failed run, by name. cluster: None
    until measured, and on a single server.
    """

    def __init__(self, request: SurveyRequest, surveyed: Mapping[str, Any]) -> None:
        """Create or read it. surveyed: servers, versions and everything else that must stay the same, plain JSON
        values.

        Raises FileError for an unusable folder, ScenarioError for another rule or cluster.
        """
        self.path, self._asked, self._surveyed = request.out, request, dict(surveyed)
        self.took: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.cluster: Cluster | None = None
        self._minutes = 0.0
        try:
            (self.path / RUNS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"--out: {self.path}: cannot be used as a folder: {error.strerror}") from None
        if (self.path / STATE).is_file():
            self._read()
        self.failed |= failures(self.path)
        with atomic_write(self.path / RULE) as file:
            file.write(request.rule.path.read_bytes())
        self._write(finished=False)

    @property
    def has_microbench(self) -> bool:
        """Whether the measurements exist."""
        return (self.path / MICROBENCH).is_file()

    def measured(self, cluster: Cluster | None) -> None:
        """Store the measurements between servers, before the micro-benchmarks are written."""
        self.cluster = cluster
        self._write(finished=False)

    def begin(self, run: PlannedRun) -> None:
        """Prepare the folder for a run."""
        (self.path / UNFINISHED / run.name).mkdir(parents=True, exist_ok=True)

    def admit(self, run: PlannedRun, seconds: float) -> None:
        """Move a finished run to its place, with its cluster."""
        folder = self.path / UNFINISHED / run.name
        if self.cluster is not None:
            write_cluster(folder / CLUSTER, self.cluster)
        os.replace(folder, self.path / RUNS / run.name)
        self.took[run.name] = seconds
        self._write(finished=False)

    def dropped(self) -> list[str]:
        """The missing runs of the rule."""
        return [run.name for run in self._asked.rule.planned() if run.name not in self.took]

    def close(self, seconds: float) -> float:
        """Write the final files of the folder, including the total minutes of all its surveys. seconds: of this one."""
        clear(self.path)
        self._minutes += seconds / 60
        self._write(finished=True)
        text = readme(self._state(finished=True), sorted(self.took), self.path)
        with atomic_write(self.path / README, text=True) as file:
            file.write(text)
        lines = [f"{_sha256(self.path / name)}  {name}\n" for name in self._files()]
        with atomic_write(self.path / SUMS, text=True) as file:
            file.writelines(lines)
        return self._minutes

    def _files(self) -> list[str]:
        """The files to hand back: without the graphs, which can be generated again, and without foreign files."""
        own = [name for name in (README, STATE, RULE, MICROBENCH) if (self.path / name).is_file()]
        below = [path for path in (self.path / RUNS).rglob("*") if path.is_file()]
        return sorted([*own, *(path.relative_to(self.path).as_posix() for path in below)])

    def _state(self, finished: bool) -> dict[str, Any]:
        state = SurveyState(
            **self._surveyed,
            cluster=None if self.cluster is None else self.cluster.facts(),
            runs=self.took,
            dropped=self.dropped(),
            failed=self.failed,
            minutes=self._minutes,
            finished=finished,
        )
        return {"schema": SCHEMA} | asdict(state)

    def _write(self, finished: bool) -> None:
        text = json.dumps(self._state(finished), indent=1, allow_nan=False)
        with atomic_write(self.path / STATE, text=True) as file:
            file.write(text + "\n")

    def _read(self) -> None:
        """Read an earlier survey."""
        raw = earlier(self.path, self._surveyed)
        if (found := raw["cluster"]) is not None:
            self.cluster = Cluster(**{name: found[name] for name in Cluster.__slots__})
        self._minutes = raw["minutes"]
        self.failed = dict(raw.get("failed", {}))
        took = raw["runs"]
        for run in self._asked.rule.planned():
            folder = self.path / RUNS / run.name
            if folder.is_dir():
                # A run may have been moved just before the survey ended.
                known = run.name in took
                self.took[run.name] = took[run.name] if known else _lasted(folder)


def earlier(path: Path, surveyed: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of `survey.json` in the folder `path`. surveyed: the properties that must match.

    Raises FileError if it is unreadable, ScenarioError if it differs.
    """
    raw = read_json(path / STATE, "survey", "; allowed: a new folder, or one that a survey wrote")
    for name, value in surveyed.items():
        if raw.get(name) != value:
            raise ScenarioError(
                f"--out: {path}: {name} was {_brief(raw.get(name))}, is {_brief(value)}; "
                "allowed: the same, or a new folder"
            )
    return raw


def note_failure(path: Path, run: PlannedRun, error: Exception) -> None:
    """Record in the folder `path` of this server that a run failed; the first failure, the cause, is kept.

    A worker may fail while worker 0 waits for it and is then ended, so each worker writes a record. Error messages may
    contain paths, so only the kind of `error` is stored, as the name of an empty file.
    """
    room = path / UNFINISHED / run.name
    with suppress(OSError):
        room.mkdir(parents=True, exist_ok=True)
        if not any(room.glob(f"{FAILED}*")):
            (room / f"{FAILED}{type(error).__name__}").touch()


def failures(path: Path) -> dict[str, str]:
    """The kind of error of each run that failed since the folder `path` was last written, by name."""
    return {word.parent.name: word.name.removeprefix(FAILED) for word in sorted(path.glob(f"{UNFINISHED}/*/{FAILED}*"))}


def clear(path: Path) -> None:
    """Remove the remains of an interrupted run on this server."""
    shutil.rmtree(path / UNFINISHED, ignore_errors=True)


def _lasted(folder: Path) -> float:
    """Seconds of a run's iterations. Raises FileError."""
    return sum(row.seconds for row in read_run(folder).iterations)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
