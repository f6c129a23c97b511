"""`python -m runtime.emulate`: train on a cluster that this machine imitates, links shaped to a bandwidth.

It parses and refuses here; `runtime.emulation` makes the cluster, runs torchrun in each host and removes everything.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import click

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.fields import Number, QuantityRange
from gcnsim.core.ids import Rank
from gcnsim.core.units import BANDWIDTH, SECONDS
from gcnsim.hardware import NetworkBandwidth, device, host, link
from gcnsim.records.compute_reading import measured_compute
from runtime.accelerator.measured_file import measured_setting
from runtime.emulation import Emulation
from runtime.emulation.cluster import EmulationRequest, clean_folders, emulate
from runtime.emulation.network import clean, enter, inside, limiter_of, small_queue
from runtime.emulation.spec import LIMITERS, PAYLOAD_SHARE, REACHED, RECEIVES, Accelerator
from runtime.launch import check_libraries, place
from runtime.launch.verdict import error_text
from runtime.methods import METHODS
from runtime.options import RULES, flag
from runtime.train.tasks import Task, naming, refuse, tasks_of, with_folder

OPTIONS: Final = (
    "scale", "host", "gpus_per_switch", "slow_worker", "background", "receives", "measured_compute",
)  # fmt: skip
SCALE: Final = 20.0
HOST: Final = "generic-16"

_SCALE: Final = Number(False, 1, 10_000)
_SWITCH: Final = Number(True, 0, 1024)
_FACTOR: Final = Number(False, 1, 1000, low_open=True)
_LEAST: Final = 625_000.0
"""Bytes/s of the slowest link that is made."""


def accelerated(request: EmulationRequest, options: Mapping[str, Any]) -> EmulationRequest:
    """`request` with the accelerator that the options name, links as much slower as its waits are longer.

    Raises ScenarioError, naming the option.
    """
    name = options["accelerator"]
    if name is None:
        for option in OPTIONS:
            if options[option] is not None:
                raise ScenarioError(f"{flag(option)}: {options[option]} needs --accelerator; allowed: with it only")
        return request
    chosen = device(name)
    if chosen.kind != "gpu":
        raise ScenarioError(f"--accelerator: {name} is not a GPU; workers on CPU cores really compute: omit the option")
    scale = SCALE if options["scale"] is None else options["scale"]
    _SCALE.check(scale, "--scale")
    if request.bandwidth / scale < _LEAST:
        most = request.bandwidth / _LEAST
        raise ScenarioError(f"--scale: {scale:g} makes links slower than 5 Mbit/s; allowed: 1 to {most:g}")
    servers = host(options["host"] or HOST)
    if request.workers_per_host > servers.cores.value:
        raise ScenarioError(
            f"--workers-per-host: {request.workers_per_host} is more than the {servers.cores.value:g} cores of "
            f"{servers.name}, one for each sampler; allowed: 1 to {servers.cores.value:g}"
        )
    if request.latency_s:
        raise ScenarioError("--latency: is not modelled with --accelerator, whose latency is measured; omit it")
    if options["limiter"] == "exchange":
        raise ScenarioError("--limiter: exchange has no links to measure; allowed with --accelerator: netns, userns")
    shared = options["gpus_per_switch"] or 0
    _SWITCH.check(shared, "--gpus-per-switch")
    worker, factor = _slow(options["slow_worker"], request.workers)
    memory, path = link("host-memory"), options["measured_compute"]
    return replace(
        request,
        bandwidth=request.bandwidth / scale,
        local=memory.bandwidth.value * memory.efficiency.value / scale,
        accelerator=Accelerator(
            name=name,
            scale=scale,
            bandwidth=request.bandwidth,
            host=servers.name,
            gpus_per_switch=shared,
            slow_worker=worker,
            slow_factor=factor,
            background=_background(options["background"], request),
            receives=options["receives"] or REACHED,
            queue=small_queue(request.hosts),
            measured_compute=None if path is None else os.path.abspath(path),
            measured_sha256=None if path is None else measured_compute(path).sha256,
        ),
    )


def _slow(text: str | None, workers: int) -> tuple[Rank | None, float]:
    if text is None:
        return None, 1.0
    rank, colon, factor = text.partition(":")
    try:
        found = int(rank), float(factor)
    except ValueError:
        colon = ""
    if not colon:
        raise ScenarioError(f"--slow-worker: {text!r} is not allowed; allowed: RANK:FACTOR, e.g. 1:1.5")
    Number(True, 0, workers - 1).check(found[0], "--slow-worker")
    _FACTOR.check(found[1], "--slow-worker")
    return found


def _background(text: str | None, request: EmulationRequest) -> float:
    if text is None:
        return 0.0
    if request.hosts < 2:
        raise ScenarioError("--background: goes from host 0 to host 1; allowed: with 2 hosts or more")
    return QuantityRange(BANDWIDTH, 0.0, 0.9 * request.bandwidth, low_open=True).read(text, "--background")


def refuse_training(tasks: Sequence[Task], accelerator: Accelerator) -> None:
    """Raise ScenarioError for what has no waits to stand for it, and for what was not measured where it must be."""
    for task in tasks:
        options = task.options
        allowed: dict[str, tuple[object, ...]] = {
            "method": tuple(name for name, method in METHODS.items() if method.waits),
            "model": ("gcn", "graphsage"),
            "device": ("cpu",),
            "dtype": ("float32",),
            "preaggregate": (False,),
            "dropout": (0.0,),
            "checkpoint_every": (0,),
            "resume": (None,),
        }
        with naming(task.name):
            for name, values in allowed.items():
                if getattr(options, name) not in values:
                    words = ", ".join(map(str, values))
                    raise ScenarioError(
                        f"{flag(name)}: {getattr(options, name)} is not possible with --accelerator; allowed: {words}"
                    )
            if accelerator.measured_compute is not None:
                measured_setting(accelerator.measured_compute, device(accelerator.name).name, options)


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_HOSTS: Final = Number(True, 1, 200)
_BANDWIDTH: Final = NetworkBandwidth(BANDWIDTH, 625_000.0, 1.25e12)
_LATENCY: Final = QuantityRange(SECONDS, 0.0, 1.0)


@click.command("runtime.emulate", context_settings=_SETTINGS)
@click.option("--hosts", type=int, required=True, help="Number of hosts, each with its own link.")
@click.option(
    "--workers-per-host", type=int, default=1, show_default=True, help="Workers on each host; they share its link."
)
@click.option("--bandwidth", required=True, help="Bandwidth of each host's link per direction, headers included.")
@click.option("--latency", default="0us", show_default=True, help="Latency added in each direction between two hosts.")
@click.option(
    "--limiter",
    type=click.Choice(("auto", *LIMITERS)),
    default="auto",
    show_default=True,
    help="What limits bandwidth: network namespaces (of root or a user), or the training program.",
)
@click.option("--accelerator", metavar="DEVICE", help="Imitate this GPU: its kernels and copies are replaced by waits.")
@click.option(
    "--scale", type=float, help="With --accelerator: make waits longer and links slower by this factor.  [default: 20]"
)
@click.option(
    "--host",
    help="With --accelerator: host in the catalogue whose CPU and memory the servers have.  [default: generic-16]",
)
@click.option("--gpus-per-switch", type=int, help="With --accelerator: workers behind one PCIe uplink; 0: one each.")
@click.option(
    "--slow-worker", metavar="RANK:FACTOR", help="With --accelerator: this worker's kernels take FACTOR times as long."
)
@click.option("--background", metavar="RATE", help="With --accelerator: other traffic, from host 0 to host 1.")
@click.option(
    "--receives",
    type=click.Choice(RECEIVES),
    help="With --accelerator: post synchronous receives when reached, or ahead.  [default: reached]",
)
@click.option(
    "--measured-compute",
    metavar="FILE",
    help="With --accelerator: kernels last as long as in this file, which `runtime.measure` wrote on such a GPU.",
)
@click.option("--plan", metavar="FILE", help="Carry out the runs listed in this file (.yaml); workers start only once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a line for the cluster, then one for each run.")
@click.argument("training", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Train on emulated hosts with limited links; TRAINING: arguments of runtime.train.

    \b
    Examples:
      python -m runtime.emulate --hosts 2 --bandwidth 500Mbps -- --method psc-gcn --tau 2
      python -m runtime.emulate --hosts 2 --workers-per-host 2 --bandwidth 1Gbps --plan plan.yaml --json
      python -m runtime.emulate clean     (removes what a killed emulation left behind)
    """
    context.obj = given


def main(argv: Sequence[str]) -> int:
    """Parse `argv`, then emulate or clean; the exit code, 2 for a user's error."""
    if list(argv) == ["clean"]:
        return _clean()
    try:
        options = _parsed(argv)
        if options is None:
            return 0
        check_libraries()
        request, training = _request(options)
        limiter = limiter_of(options["limiter"])
        if limiter == "exchange" and request.accelerator is not None:
            raise ScenarioError("--accelerator: needs network namespaces, which are not possible here")
        if limiter == "userns" and not inside():
            enter(argv)
        as_json = bool(options["as_json"])
        return emulate(
            replace(request, limiter=limiter), training, lambda facts: _print_emulation(facts, as_json), _say
        )
    except (GcnsimError, click.ClickException) as error:
        _say(error_text(error, "runtime.emulate"))
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


def _request(options: dict[str, Any]) -> tuple[EmulationRequest, list[str]]:
    """The cluster and the arguments of training, both checked. Raises GcnsimError or a ClickException."""
    if place() is not None:
        raise ScenarioError("RANK: is set: emulation starts its workers itself; run it outside of torchrun")
    _HOSTS.check(options["hosts"], "--hosts")
    RULES["workers"].check(options["workers_per_host"], "--workers-per-host")
    bandwidth = _BANDWIDTH.read(options["bandwidth"], "--bandwidth")
    latency = _LATENCY.read(options["latency"], "--latency")
    request = EmulationRequest(
        options["hosts"], options["workers_per_host"], bandwidth, options["bandwidth"], latency, ""
    )
    request = accelerated(request, options)
    training = [*options["training"], *(["--plan", options["plan"]] if options["plan"] else [])]
    training += ["--json"] if options["as_json"] else []
    try:
        tasks = tasks_of(training)
    except click.ClickException as error:
        raise ScenarioError(error_text(error)) from None
    if tasks is None:
        raise ScenarioError("--help: not among the arguments of training; see python -m runtime.train --help")
    for word in options["training"]:
        typed = tasks[0].options.workers
        if word.partition("=")[0] == "--workers" and typed != request.workers:
            raise ScenarioError(f"--workers: {typed} is not allowed; the hosts have {request.workers}; leave it out")
    training, settled = with_folder(training, tasks)
    settled = tuple(replace(task, options=replace(task.options, workers=request.workers)) for task in settled)
    if request.accelerator is not None:
        refuse_training(settled, request.accelerator)
    refuse(settled)
    return request, training


def _print_emulation(facts: Emulation, as_json: bool) -> None:
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


def _say(line: str) -> None:
    sys.stderr.write(f"runtime.emulate: {line}\n")
    sys.stderr.flush()
