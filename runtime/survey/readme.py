"""What a survey's folder says of itself, for whoever it is handed to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gcnsim.units import BANDWIDTH
from runtime.survey.request import GRAPHS, RUNS

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
{afterwards}
```

## Send it back

In the folder above this one, without the graphs, which anyone can make up again:

```sh
{pack}
```

Attach the archive to an issue of the gcnsim project, or say in one where it can be fetched. It holds measurements, the
names of the hardware and the versions of software (the table below). Not in it: {untold}.
Look for yourself: all but `access.trace`, `*.parquet`, `*.npz` and `*.bin` is text. What it is used for:
`docs/contribute_measurements.md`.

## What is here

| what | content |
|---|---|
| `profile.json` | micro-benchmarks of the first server, and of transfers: between servers where there are several |
| `runs/` | each run as `runtime.train` records it, its access trace, and the cluster it ran on (`cluster.json`) |
| `graphs/` | the made-up graphs that were trained; neither of the two commands needs them |
| `survey.json` | servers, versions, what was measured between servers, seconds of each run, what was left out |
| `rule.yaml` | the rule that said what to train |
| `SHA256SUMS` | of every file but the graphs |

## Left out

{dropped}
"""

NOT_TOLD: Final = "names of servers, users and networks, addresses, data of yours, paths but those typed"
"""What a folder says nothing of."""


def commands(runs: Sequence[str], folder: str) -> list[str]:
    """What to do with a survey in its folder, called `folder`. runs: the names of those that are there.

    Its hashes, a calibration by the runs that one may see, the judgement of all others; last, in the folder above, the
    one file that is sent back.
    """
    given = "".join(f"--runs {RUNS}/{name} " for name in runs if name.startswith("calibration-"))
    name = shlex.quote(folder)
    return [
        "sha256sum --check --quiet SHA256SUMS",
        f"gcnsim calibrate profile.json {given}--out calibration.json",
        f"gcnsim validate {RUNS}/held-out-* --calibration calibration.json --out report",
        f"tar -czf {name}.tar.gz --exclude={GRAPHS} {name}",
    ]


def readme(state: Mapping[str, Any], runs: Sequence[str], folder: str) -> str:
    """README.md. state: of survey.json; runs: the names of those that are there; folder: that of the survey."""
    *afterwards, pack = commands(runs, folder)
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
    waits = f"; waits in the place of {facts['accelerator']}, nothing computed" if "accelerator" in facts else ""
    return f", emulated on one machine{waits}"


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
