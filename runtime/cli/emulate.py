"""`python -m runtime.emulate`: train on a cluster that this machine imitates, links shaped to a bandwidth.

It parses and refuses here; `runtime.emulation` makes the cluster, runs torchrun in each host and removes everything.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from gcnsim.errors import GcnsimError, ScenarioError
from gcnsim.fields import Measure, Number
from gcnsim.hardware import NetworkBandwidth
from gcnsim.units import BANDWIDTH, SECONDS
from runtime.cli.accelerator import accelerated, refuse_training
from runtime.emulation import Emulation
from runtime.emulation.accelerator import RECEIVES
from runtime.emulation.cluster import EmulationRequest, clean_folders, emulate
from runtime.emulation.network import clean
from runtime.emulation.privileges import enter, inside, limiter_of
from runtime.emulation.spec import LIMITERS, PAYLOAD_SHARE
from runtime.launch import check_libraries, place
from runtime.options import RULES
from runtime.train.tasks import error_text, refuse, tasks_of, with_folder

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_HOSTS: Final = Number(True, 1, 200)
_BANDWIDTH: Final = NetworkBandwidth(BANDWIDTH, 625_000.0, 1.25e12)
_LATENCY: Final = Measure(SECONDS, 0.0, 1.0)


@click.command("runtime.emulate", context_settings=_SETTINGS)
@click.option("--hosts", type=int, required=True, help="Hosts, each with a link of its own.")
@click.option("--workers-per-host", type=int, default=1, show_default=True, help="They share their host's link.")
@click.option("--bandwidth", required=True, help="Of each host's link, each way, packet headers included.")
@click.option("--latency", default="0us", show_default=True, help="Added one way between two hosts.")
@click.option(
    "--limiter",
    type=click.Choice(("auto", *LIMITERS)),
    default="auto",
    show_default=True,
    help="Network namespaces (of root or of a user), or the exchange itself.",
)
@click.option("--accelerator", metavar="DEVICE", help="Workers on this GPU: kernels and copies are waits, not work.")
@click.option("--scale", type=float, help="Waits so many times as long, links so many times slower.  [default: 20]")
@click.option("--host", help="With --accelerator: CPU side of the servers, of the catalogue.  [default: generic-16]")
@click.option("--gpus-per-switch", type=int, help="With --accelerator: workers behind one PCIe uplink; 0: one each.")
@click.option("--slow-worker", metavar="RANK:FACTOR", help="With --accelerator: its kernels take FACTOR times as long.")
@click.option("--background", metavar="RATE", help="With --accelerator: what others send from host 0 to host 1.")
@click.option(
    "--receives",
    type=click.Choice(RECEIVES),
    help="With --accelerator: post synchronous receives where a worker reaches them, or ahead.  [default: reached]",
)
@click.option("--plan", metavar="FILE", help="Train the runs of this list (.yaml), workers started once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a line for the cluster, then one for each run.")
@click.argument("training", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Train on emulated hosts: torchrun in each, links shaped; TRAINING: arguments of runtime.train.

    \b
    Examples:
      python -m runtime.emulate --hosts 2 --bandwidth 500Mbps -- --method psc-gcn --tau 2
      python -m runtime.emulate --hosts 2 --workers-per-host 2 --bandwidth 1Gbps --plan plan.yaml --json
      python -m runtime.emulate clean     (removes what a killed emulation left)
    """
    context.obj = given


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then emulate or clean; the exit code, 2 for a user's error."""
    if list(argv) == ["clean"]:
        return _clean()
    try:
        given = _parsed(argv)
        if given is None:
            return 0
        check_libraries()
        asked, training = _asked(given)
        limiter = limiter_of(given["limiter"])
        if limiter == "exchange" and asked.accelerator is not None:
            raise ScenarioError("--accelerator: needs network namespaces, which are not possible here")
        if limiter == "userns" and not inside():
            enter(argv)
        as_json = bool(given["as_json"])
        return emulate(replace(asked, limiter=limiter), training, lambda facts: _tell(facts, as_json), _say)
    except (GcnsimError, click.ClickException) as error:
        _say(_error_text(error))
        return 2
    except KeyboardInterrupt:
        _say("stopped by SIGINT")
        return 128 + signal.SIGINT


def _parsed(argv: Sequence[str]) -> dict[str, Any] | None:
    """The arguments; None when help was asked for and printed."""
    try:
        with command.make_context("runtime.emulate", list(argv)) as context:
            command.invoke(context)
            found: dict[str, Any] = context.obj
            return found
    except click.exceptions.Exit:
        return None


def _asked(given: dict[str, Any]) -> tuple[EmulationRequest, list[str]]:
    """The cluster and the arguments of training, both checked. Raises GcnsimError or a ClickException."""
    if place() is not None:
        raise ScenarioError("RANK: is set: emulation starts its workers itself; run it outside of torchrun")
    _HOSTS.check(given["hosts"], "--hosts")
    RULES["workers"].check(given["workers_per_host"], "--workers-per-host")
    bandwidth = _BANDWIDTH.read(given["bandwidth"], "--bandwidth")
    latency = _LATENCY.read(given["latency"], "--latency")
    asked = EmulationRequest(given["hosts"], given["workers_per_host"], bandwidth, given["bandwidth"], latency, "")
    asked = accelerated(asked, given)
    training = [*given["training"], *(["--plan", given["plan"]] if given["plan"] else [])]
    training += ["--json"] if given["as_json"] else []
    try:
        tasks = tasks_of(training)
    except click.ClickException as error:
        raise ScenarioError(error_text(error)) from None
    if tasks is None:
        raise ScenarioError("--help: not among the arguments of training; see python -m runtime.train --help")
    for word in given["training"]:
        typed = tasks[0].options.workers
        if word.partition("=")[0] == "--workers" and typed != asked.workers:
            raise ScenarioError(f"--workers: {typed} is not allowed; the hosts have {asked.workers}; leave it out")
    training, settled = with_folder(training, tasks)
    if asked.accelerator is not None:
        refuse_training(settled)
    refuse([replace(task, options=replace(task.options, workers=asked.workers)) for task in settled])
    return asked, training


def _tell(facts: Emulation, as_json: bool) -> None:
    """What was made and measured: a JSON object on standard output, or a line on standard error."""
    if as_json:
        sys.stdout.write(json.dumps({"emulation": facts.asdict()}) + "\n")
        sys.stdout.flush()
        return
    carried = BANDWIDTH.shown_as(facts.bandwidth * PAYLOAD_SHARE)
    found = "not measured" if facts.measured is None else f"measured {BANDWIDTH.shown_as(facts.measured)}"
    stands = f", {accelerator['name']} at scale {accelerator['scale']:g}" if (accelerator := facts.accelerator) else ""
    latency = f", {SECONDS.shown_as(facts.latency_s)} latency by {facts.latency_by}" if facts.latency_s else ""
    _say(
        f"{facts.hosts} x {facts.workers_per_host} workers on {facts.cores} cores, {8e-6 * facts.bandwidth:g} Mbit/s "
        f"by {facts.limiter}: {carried} of payload, {found}{latency}{stands}"
    )


def _clean() -> int:
    """Remove what dead emulations left, and say what."""
    removed = [*clean(), *clean_folders()]
    sys.stdout.write("".join(f"removed {name}\n" for name in removed) or "nothing to remove\n")
    return 0


def _error_text(error: GcnsimError | click.ClickException) -> str:
    if isinstance(error, click.ClickException):
        return " ".join(error.format_message().split()) + " (see python -m runtime.emulate --help)"
    return str(error)


def _say(line: str) -> None:
    sys.stderr.write(f"runtime.emulate: {line}\n")
    sys.stderr.flush()
