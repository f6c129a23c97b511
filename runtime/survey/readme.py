"""What a survey's folder says of itself, for whoever it is handed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gcnsim.units import BANDWIDTH
from runtime.survey.request import RUNS

_TEXT: Final = """\
# Survey of a cluster

Made by `python -m runtime.survey` in {minutes:.1f} minutes, with {versions}.

{servers} x {each} workers on {device}{emulated}:

| server | cpu | cores | memory | gpus |
|---|---|---|---|---|
{hardware}
{between}
Runs for a calibration: {seen}. Held out: {judged}. Which they are stands in `rule.yaml`, written before they ran.

## Calibrate and validate

In this folder:

```sh
sha256sum --check --quiet SHA256SUMS
gcnsim calibrate profile.json {given}--out calibration.json
gcnsim validate {runs}/held-out-* --calibration calibration.json --out report
```

## What is here

| what | content |
|---|---|
| `profile.json` | micro-benchmarks of the first server, and of transfers: between servers where there are several |
| `runs/` | each run as `runtime.train` records it, its access trace, and the cluster it ran on (`cluster.json`) |
| `graphs/` | the made-up graphs that were trained; neither of the two commands needs them |
| `survey.json` | servers, versions, what was measured between servers, seconds of each run, what was left out |
| `rule.yaml` | the rule that said what to train |
| `SHA256SUMS` | of every file |

## Left out

{dropped}
"""


def readme(state: Mapping[str, Any], runs: Sequence[str]) -> str:
    """README.md. state: of survey.json; runs: the names of those that are there."""
    seen = [name for name in runs if name.startswith("calibration-")]
    versions = ", ".join(f"{name} {version}" for name, version in state["versions"].items())
    return _TEXT.format(
        minutes=state["minutes"],
        versions=versions,
        servers=len(state["servers"]),
        each=state["workers"] // len(state["servers"]),
        device=state["device"],
        emulated="" if state["emulated"] is None else ", emulated on one machine",
        hardware="\n".join(_row(number, server) for number, server in enumerate(state["servers"])),
        between=_between(state["cluster"]),
        seen=len(seen),
        judged=len(runs) - len(seen),
        given="".join(f"--runs {RUNS}/{name} " for name in seen),
        runs=RUNS,
        dropped=_dropped(state["dropped"]),
    )


def _row(number: int, server: Mapping[str, Any]) -> str:
    gpus = ", ".join(server["gpus"]) or "-"
    return f"| {number} | {server['cpu']} | {server['cores']} | {server['memory_bytes'] / 2**30:.0f} GiB | {gpus} |"


def _between(cluster: Mapping[str, Any] | None) -> str:
    """What the network carried, in a paragraph of its own; nothing on a single server."""
    if cluster is None:
        return ""
    return (
        f"\nBetween servers {BANDWIDTH.shown_as(cluster['measured'])} of payload were measured, all sending at once; "
        f"the link counts as {8e-6 * cluster['bandwidth']:.0f} Mbit/s.\n"
    )


def _dropped(names: Sequence[str]) -> str:
    if not names:
        return "Nothing."
    return f"{len(names)} runs of the rule, because time was short or the survey was stopped: {', '.join(names)}."
