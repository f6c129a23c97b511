"""Two faults on an emulated cluster, beside what the simulator says of them: a paused worker, and half a link.

`python -m studies.emulated_faults` trains on two hosts without a fault, with worker 0 stopped three times (SIGSTOP,
SIGCONT), and with the link of host 0 halved both ways once the run is under way (`tc qdisc change`); it measures the
parts of the run without a fault, predicts that run, without a calibration, with the same faults injected, and prints
the table of docs/faults.md. Needs Linux, root, `ip` and `tc`; the graph comes from GCNSIM_DATA. `--quick` is a tiny run
on digits: it shows that all works.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean

from benchmarks.measuring import OUT
from gcnsim.core.units import BANDWIDTH
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.records.compute_reading import measured_compute, measured_files
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.scenario import Fault, Pause, Scenario, SlowLink
from gcnsim.simulation import simulate_scenario
from runtime.emulation.network import Network, clean, refused, reshape

HOSTS = 2
METHODS = {
    "full-graph": ("--method", "full-graph"),
    "PSC-GCN": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.3"),
}
PAUSES = (12, 24, 36)
"""Iterations after which worker 0 is stopped."""

NEAR = 6
"""Iterations from a pause on in which all of it has been felt."""

SLOWED = 12
"""The iteration after which the link is halved; `NEAR` later it shows."""

MEASURED_S = 20.0
"""How long the parts of a run are measured, times the seconds of a pause."""

LAST_S = 60.0
"""How long an interrupted emulation may take to remove what it made."""


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The training: graph and model as words of runtime.train; bandwidth of the wire; seconds of each pause."""

    words: tuple[str, ...]
    bandwidth: str
    iterations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One method's figures in seconds: measured, then predicted. paused: what each pause added."""

    method: str
    before: tuple[float, float]
    paused: tuple[tuple[float, ...], float]
    halved: tuple[float, float]


Strike = Callable[[int, int], None]
"""Told the id of the emulating process and each iteration as it ends."""


def trained(training_request: TrainingRequest, method: Sequence[str], folder: Path, strike: Strike) -> list[float]:
    """Seconds from each iteration's end to the next one's in a run into `folder`, which `strike` may disturb.

    The first is the run's own. Told from outside: a worker that is stopped between two iterations does not notice.
    Raises RuntimeError if the run fails.
    """
    folder.mkdir(parents=True)
    command = [
        sys.executable,
        "-m",
        "runtime.emulate",
        "--hosts",
        str(HOSTS),
        "--bandwidth",
        training_request.bandwidth,
        "--",
    ]
    command += [
        *training_request.words,
        *method,
        "--iterations",
        str(training_request.iterations),
        "--eval-every",
        "0",
        "--threads",
        "1",
    ]
    command += ["--warmup", "0", "--json-log", "--out", str(folder), "--save-trace", str(folder / "access.trace")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    lines: list[str] = []
    seconds: list[float] = []
    last = 0.0
    try:
        for line in process.stderr or ():
            lines.append(line)
            if line.startswith('{"iteration"'):
                ended = json.loads(line)
                now = time.perf_counter()
                seconds.append(now - last if seconds else float(ended["seconds"]))
                last = now
                strike(process.pid, int(ended["iteration"]))
    finally:
        _ended(process)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{''.join(lines)}")
    return seconds


def _ended(process: subprocess.Popen[str]) -> None:
    """Wait for an emulation's end; interrupt it first where we leave early. Nothing it made is left."""
    if sys.exc_info()[0] is not None and process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=LAST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    finally:
        if process.stderr is not None:
            process.stderr.close()
        clean()


def pausing(seconds: float) -> Strike:
    """Stops worker 0 for `seconds` after each of PAUSES."""

    def strike(pid: int, iteration: int) -> None:
        if iteration not in PAUSES:
            return
        worker = worker_of(pid, 0)
        os.kill(worker, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(worker, signal.SIGCONT)

    return strike


def halving(bandwidth: str) -> Strike:
    """Halves the link of host 0 after iteration SLOWED."""
    first = BANDWIDTH.parse(bandwidth)

    def strike(pid: int, iteration: int) -> None:
        if iteration == SLOWED:
            reshape(Network(pid, HOSTS), 0, first, first / 2)

    return strike


def worker_of(pid: int, rank: int) -> int:
    """The process of a worker among those that `pid` started. Raises LookupError."""
    below = [pid]
    while below:
        each = below.pop()
        try:
            children = Path(f"/proc/{each}/task/{each}/children").read_text(encoding="utf-8").split()
            words = Path(f"/proc/{each}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if f"RANK={rank}".encode() in words:
            return each
        below += [int(child) for child in children]
    raise LookupError(f"no worker of rank {rank} below process {pid}")


def predicted(scenario: Scenario, *faults: Fault) -> float:
    """Seconds per iteration."""
    return simulate_scenario(replace(scenario, faults=faults)).metrics.iteration_s


def measured(run: Path, out: Path, seconds: float) -> list[str]:
    """The files of the times of the run's parts, measured alone into the folder `out` within `seconds`."""
    words = ["--runs", str(run), "--out", str(out), "--seconds", f"{seconds:g}", "--quiet"]
    subprocess.run([sys.executable, "-m", "runtime.measure", *words], check=True, stdout=subprocess.DEVNULL)
    return measured_files([out])


def compared(training_request: TrainingRequest, name: str, folder: Path) -> Row:
    """One method, measured and predicted."""
    calm = trained(training_request, METHODS[name], folder / "calm", lambda pid, iteration: None)
    paused = trained(training_request, METHODS[name], folder / "paused", pausing(training_request.seconds))
    halved = trained(training_request, METHODS[name], folder / "halved", halving(training_request.bandwidth))
    # The line of iteration n comes when n has ended: what stops then is n + 1.
    felt = {at + after for at in PAUSES for after in range(1, NEAR + 1)}
    usual = mean(seconds for at, seconds in enumerate(paused) if at >= NEAR and at not in felt)
    added = tuple(sum(paused[at + 1 : at + 1 + NEAR]) - NEAR * usual for at in PAUSES)
    files = measured(folder / "calm", folder / "measured", MEASURED_S * training_request.seconds)
    compute = [measured_compute(path) for path in files]
    scenario = scenario_of(read_recorded_run(folder / "calm"), measured=compute)
    count = scenario.run.iterations
    with_pause, without = (
        predicted(scenario, Pause(seconds=s, iteration=count // 2)) for s in (training_request.seconds, 1e-6)
    )
    return Row(
        name,
        (mean(calm[SLOWED:]), predicted(scenario)),
        (added, count * (with_pause - without)),
        (mean(halved[SLOWED + NEAR :]), predicted(scenario, SlowLink("nic0", 2.0))),
    )


def table(rows: Sequence[Row], seconds: float) -> str:
    """The rows as Markdown."""
    lines = ["| | measured | predicted |", "|---|---|---|"]
    for row in rows:
        before = " | ".join(f"{1e3 * item:.0f} ms" for item in row.before)
        lines.append(f"| {row.method}, iteration before | {before} |")
    for row in rows:
        added, content = row.paused
        spread = f"{min(added):.2f} to {max(added):.2f} s, mean {mean(added):.2f} s"
        lines.append(f"| {row.method}, added by a pause of {seconds:g} s | {spread} | {content:.2f} s |")
    for row in rows:
        pairs = zip(row.halved, row.before, strict=True)
        times = (f"{1e3 * half:.0f} ms ({half / whole:.2f} times)" for half, whole in pairs)
        lines.append(f"| {row.method}, iteration with half the link | {' | '.join(times)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, predict and print; figures also go to out/emulated_faults.json."""
    parser = argparse.ArgumentParser(prog="studies.emulated_faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny run on digits")
    quick = parser.parse_args(arguments).quick
    if (why := refused()) is not None:
        parser.error(f"no network namespaces: {why}")
    if not quick and not os.environ.get("GCNSIM_DATA"):
        parser.error("GCNSIM_DATA: not set; it names the folder of amazon_cs.npz")
    model = ("--layers", "2", "--hidden", "16") if quick else ("--layers", "3", "--hidden", "128")
    graph = ("--dataset", "digits") if quick else ("--dataset", "amazon_cs", "--feature-dim", "128")
    training_request = TrainingRequest(
        (*graph, *model), "20Mbps" if quick else "300Mbps", 50 if quick else 60, 0.3 if quick else 1.0
    )
    with tempfile.TemporaryDirectory(prefix="gcnsim-faults-") as folder:
        rows = [compared(training_request, name, Path(folder) / str(index)) for index, name in enumerate(METHODS)]
    OUT.mkdir(exist_ok=True)
    content = {"load": os.getloadavg()[0], "rows": [asdict(row) for row in rows]}
    (OUT / "emulated_faults.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{table(rows, training_request.seconds)}\nload {content['load']:.1f} on {os.cpu_count()} cores\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
