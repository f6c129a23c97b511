"""The sentences of an answer as plain text: its title, the summary, the reasons, the next steps.

Terminal, page and notebook print the same words. Missing parts of an answer are omitted.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gcnsim.core.errors import GcnsimError, plural
from gcnsim.core.units import format_number, format_seconds, range_text
from gcnsim.hardware import GENERIC_LINK, device, instance_of, is_host
from gcnsim.planning.capacity_goal import money
from gcnsim.report.answer.rows import MACHINE, labels_of, number, plain, shared_knobs, varies
from gcnsim.results import Row, RuleReport, SimulationReport, Step, TimeAgain, WhatIf
from gcnsim.scenario import ClusterSpec

UNCALIBRATED = "UNCALIBRATED"
CLOSE = 0.05
"""Other work is said to take nearly as long if the gain from removing the bottleneck is at most this share."""

PRECISION = 0.01
"""Smaller changes are below the precision of a simulation of a few iterations."""
MOST_EXCLUDED = 4
"""Excluded settings that are named; others are counted."""
APART = "no clear difference"

OF_KIND: Final = {"GPU compute": ("this GPU", "all GPUs"), "NIC": ("this NIC", "all NICs")}
"""One resource and all of its kind, by the first words of `Row.limited_by`."""

OTHERS: Final = ("it alone", "all of its kind")
EVEN = ("partition", "perfectly even")
"""The step that no partitioner can guarantee."""


class StepText(NamedTuple):
    """A change of one knob: its values, the iteration time, and the change in words.

    If the number of iterations per epoch changes, the time is per epoch.
    """

    knob: str
    before: str
    after: str
    iteration: str
    change: str
    allowed: bool = True
    """Whether it fits and the rule of the recommendation allows it."""

    @property
    def move(self) -> str:
        """The knob with both values: `tau 2 -> 1`."""
        if (self.knob, self.after) == EVEN:
            return "perfectly even partition (best case)"
        return f"{self.knob} {self.before} -> {self.after}"


def title_of(answer: WhatIf) -> str:
    """The question as far as all rows share it, with the machine that decides the answer: servers and GPUs, the links
    between them, the price.

    `reddit, 6 x T4 in 3 servers of 2, 15 Gbit/s, transport direct (assumed), 3.16 USD/h of g4dn.xlarge`.
    """
    rows = answer.rows
    first = rows[0]
    shown = {key for key in MACHINE if not varies(rows, key)}
    parts = [first.dataset] if "dataset" in shown and first.dataset else []
    if {"gpus", "device"} <= shown:
        parts.append(f"{first.gpus} x {_device(first, answer)}{_servers(first.gpus, answer)}")
    elif "gpus" in shown:
        parts.append(f"{plural(first.gpus, 'GPU')}{_servers(first.gpus, answer)}")
    elif "device" in shown:
        parts.append(_device(first, answer))
    if "bandwidth" in shown and _several_servers(answer):
        kind = answer.scenario["cluster"].get("link", GENERIC_LINK)
        named = "" if kind == GENERIC_LINK else f" {kind}"
        parts.append(f"{first.bandwidth_bytes_per_s * 8 / 1e9:g} Gbit/s{named}")
    between = answer.provenance.between_gpus
    paths = [] if between is None else [between]
    price = [] if first.cost_per_hour is None or varies(rows, "cost_per_hour") else [price_text(first)]
    return plain(", ".join([*parts, *shared_knobs(rows).values(), *paths, *price]) or "what-if")


def price_text(row: Row) -> str:
    """What the machine costs an hour, and the instance whose price per GPU that is where it is no such instance."""
    assert row.cost_per_hour is not None
    return f"{money(row.cost_per_hour)} {row.currency}/h" + (f" of {row.price_of}" if row.price_of else "")


def _several_servers(answer: WhatIf) -> bool:
    """Whether any row's GPUs are in several servers, so that the network matters."""
    each = answer.scenario["cluster"].get("gpus_per_server") or ClusterSpec().gpus_per_server
    return any(row.gpus > (row.gpus_per_server or each) for row in answer.rows)


def _device(row: Row, answer: WhatIf) -> str:
    if answer.scenario["cluster"].get("devices"):
        return "unequal GPUs"
    try:
        profile = device(row.device)
        return "CPU core" if profile.kind == "cpu" else profile.title.removeprefix("NVIDIA ")
    except GcnsimError:
        return row.device or "GPU"


def _servers(gpus: int, answer: WhatIf) -> str:
    """The servers, and what they are if not the usual ones. A scenario omits the GPUs per server if they are the
    default."""
    if varies(answer.rows, "gpus_per_server") or varies(answer.rows, "host"):
        return ""
    cluster = answer.scenario["cluster"]
    each = cluster.get("gpus_per_server") or ClusterSpec().gpus_per_server
    usual = ClusterSpec().host
    host = "" if cluster.get("host", usual) == usual else f" ({cluster['host']})"
    return f" in {plural(-(-gpus // each), 'server')} of {each}{host}"


def label_of(answer: WhatIf | SimulationReport) -> str:
    """How trustworthy the answer is, in capitals."""
    if isinstance(answer, WhatIf):
        return plain(answer.certainty.label)
    if answer.provenance.measured_compute is not None:
        return plain(f"MEASURED on {answer.provenance.measured_compute.device}")
    return UNCALIBRATED if answer.provenance.calibration.startswith("none:") else ""


def verdict_of(answer: WhatIf) -> str:
    """The recommendation in one sentence."""
    return plain(answer.recommendation.verdict)


def reasons_of(answer: WhatIf) -> list[tuple[str, str]]:
    """The reasons of the recommendation, its confidence, the bottleneck, and the considered settings."""
    best = answer.recommendation
    reasons = [("why", best.why), ("confidence", best.confidence.text)]
    reasons += [("limited by", limit_text(best.row)), ("so", best.note or "")]
    reasons += [("straggler", straggler_of(answer)), *asked_of(answer), ("considered", best.rule.text)]
    reasons += [("measure first", answer.certainty.measure_first or "")]
    out = [f"{excluded.what}: {excluded.why}" for excluded in best.excluded[:MOST_EXCLUDED]]
    if len(best.excluded) > MOST_EXCLUDED:
        out.append(f"{len(best.excluded) - MOST_EXCLUDED} more (--json names them)")
    reasons += [("" if index else "excluded", text) for index, text in enumerate(out)]
    return [(name, plain(text)) for name, text in reasons if text]


def asked_of(answer: WhatIf) -> list[tuple[str, str]]:
    """The recommended setting without faults, and its cost; empty texts where no faults or prices were given."""
    return [("faults", plain(fault_free_of(answer))), ("cost", plain(cost_of(answer)))]


def accuracy_of(answer: WhatIf) -> str:
    """What the recommended setting is known to lose, unless that is nothing."""
    lost = answer.recommendation.row.known_loss
    if lost is None:
        return "how much accuracy this setting loses is not known; python -m runtime.train shows it on your graph"
    if not lost:
        return ""
    return f"lost {lost:g} points of accuracy where it was measured; python -m runtime.train shows it on your graph"


def cost_of(answer: WhatIf) -> str:
    """The cost of the recommended setting and the price used, if prices were chosen."""
    row = answer.recommendation.row
    if answer.prices is None:
        return ""
    if row.cost_per_iteration is None or row.cost_per_1000_iterations is None or row.cost_per_epoch is None:
        host = answer.scenario["cluster"]["host"]
        own = is_host(host) and instance_of(host) is not None
        what = f"{row.device}, as {host}," if own else row.device
        return f"no {answer.prices.pricing} price of {what} is known (--price {row.device}=0.35USD/h gives one)"
    epoch = "" if row.iterations_per_epoch == 1 else f", {money(row.cost_per_epoch)} an epoch"
    thousand = f"{money(row.cost_per_1000_iterations)} {row.currency} per 1,000 iterations"
    return f"{thousand}, {money(row.cost_per_iteration)} an iteration{epoch}: {row.price}"


def limit_text(row: Row) -> str:
    """The bottleneck, and how much shorter the iteration is without it."""
    share, whole = row.limited_by_share, row.limited_by_kind_share
    if share is None or whole is None:
        # Version 0.1 stored the share of the iteration in which it is busy.
        return plain(row.limited_by)
    if share <= PRECISION:
        return plain(f"{row.limited_by}; less than 1 % less time if any one of them is infinitely fast")
    one = more = ""
    if whole > share + PRECISION:
        resource, every = next((words for name, words in OF_KIND.items() if row.limited_by.startswith(name)), OTHERS)
        one, more = f"{resource} were ", f", {_percent(whole)} if {every} were"
    if whole <= CLOSE:
        more += ", because other work at the same time takes nearly as long"
    if waits_longer(row):
        waits = _percent(row.exposed_comm_s / row.iteration_s)
        more += f"; it waits for communication for {waits}, but for several resources, each of which alone saves less"
    return plain(f"{row.limited_by}: {_percent(share)} less time if {one}infinitely fast{more}")


def waits_longer(row: Row) -> bool:
    """Whether GPU compute is the bottleneck of a row that waits longer for communication than it computes.

    No single link gains as much as GPU compute, although all links together would.
    """
    return row.limited_by_kind == "compute" and bool(row.limited_by_share) and row.exposed_comm_s > row.compute_s


def straggler_of(answer: WhatIf) -> str:
    """The worker that the others wait for, and the gain from a balanced partition."""
    straggler = answer.straggler
    if straggler is None:
        return ""
    even = "" if straggler.even_s is None else f"; with an even partition: {format_seconds(straggler.even_s)}"
    placed = "" if straggler.placed_s is None else f"; these parts placed evenly: {format_seconds(straggler.placed_s)}"
    return plain(straggler.text + even + placed)


def fault_free_of(answer: WhatIf) -> str:
    """If faults were injected, the recommended setting without them."""
    calm = answer.fault_free
    if calm is None:
        return ""
    time = format_seconds(calm.iteration_s)
    run = f"over {plural(answer.scenario['run']['iterations'], 'iteration')}"
    return f"fault-free for comparison: {time}; {run}, the faults make it {calm.times:.2f} times as long"


def alternatives_of(answer: WhatIf) -> list[tuple[str, str]]:
    """With several machines, other useful settings, each with its role."""
    best, roles = answer.recommendation, []
    if best.networks:
        roles.append(("faster network", plain(best.networks)))
    for alternative in best.alternatives:
        same = _same(alternative.row, best.row)
        label = "the recommended one" if same else _setting(alternative.row, priced=alternative.role != "cheapest")
        roles.append((plain(alternative.role), plain(f"{label}; {alternative.why}")))
    return roles


def _same(row: Row, other: Row) -> bool:
    """Whether two rows have the same setting on the same machine."""
    named = (*MACHINE, "method", "tau", "epsilon", "rate", "cache_fraction", "setting")
    return not any(varies((row, other), key) for key in named)


def _setting(row: Row, *, priced: bool) -> str:
    """A row in a clause: method, knobs, machine, time and, if not given elsewhere, price."""
    host = f" of {row.host}" if row.host else ""
    machine = f"{row.gpus} x {row.device}{host} at {row.bandwidth}"
    price = row.cost_per_1000_iterations if priced else None
    cost = "" if price is None else f", {format_number(price, 2)} {row.currency} per 1,000 iterations"
    return f"{', '.join((row.method, *row.knobs))} on {machine}: {format_seconds(row.iteration_s)}{cost}"


def steps_of(answer: WhatIf) -> list[StepText]:
    """The next steps in the answer's order."""
    return [
        StepText(
            plain(step.knob),
            number(step.start),
            number(step.end),
            format_seconds(step.iteration_s) if step.epoch_s is None else f"{format_seconds(step.epoch_s)} an epoch",
            change_of(step)
            + (", does not fit" if step.fits is False else "")
            + (f", excluded by {_option(step, answer.recommendation.rule)}" if step.too_approximate else ""),
            step.fits is not False and not step.too_approximate,
        )
        for step in answer.next_steps
    ]


def _option(step: Step, rule: RuleReport) -> str:
    """The option that excludes a step."""
    if step.knob == "tau":
        return f"--max-staleness {rule.max_staleness}"
    return f"--min-sampling-rate {rule.min_sampling_rate:g}"


def change_of(step: Step) -> str:
    """The effect of a step, with the interval of its paired difference: `42 % shorter (38 to 47 %)`."""
    gain, low, high = step.gain, step.gain_low, step.gain_high
    if low is None or high is None:
        return f"{_percent(abs(gain))} {_way(gain)}"
    if not step.distinguishable:
        sure = max(abs(low), abs(high)) < PRECISION
        return APART if sure else f"{APART} ({_end(low)} to {_end(high)})"
    ends = sorted((abs(low), abs(high)))
    return f"{_percent(abs(gain))} {_way(gain)} ({_percent(ends[0]).removesuffix(' %')} to {_percent(ends[1])})"


def saved_range(low: float, high: float) -> str:
    """The saving of a change, between two shares of the time.

    >>> saved_range(0.08, 0.16), saved_range(-0.02, 0.05)
    ('8.0 to 16 % shorter', '2.0 % longer to 5.0 % shorter')
    """
    if low < 0 < high:
        return f"{_end(low)} to {_end(high)}"
    ends = sorted((abs(low), abs(high)))
    return f"{_percent(ends[0]).removesuffix(' %')} to {_percent(ends[1])} {_way(low + high)}"


def _end(gain: float) -> str:
    """One end of the effect of a step: `9.2 % longer`, `24 % shorter`, `the same`."""
    return "the same" if abs(gain) < 0.0005 else f"{_percent(abs(gain))} {_way(gain)}"


def _way(gain: float) -> str:
    return "shorter" if gain > 0 else "longer"


def _percent(share: float) -> str:
    """A share with at most three digits: 4.2 %, 42 %, 99.7 %."""
    value = 100 * share
    return f"{value:.1f} %" if value < 9.95 or 99 <= value < 99.95 else f"{value:.0f} %"


def no_effect_of(answer: WhatIf) -> list[tuple[str, str]]:
    """The knobs without effect here, and why."""
    return [(plain(no_effect.knob), plain(no_effect.why)) for no_effect in answer.no_effect]


def sources_of(answer: WhatIf) -> list[tuple[str, str]]:
    """The graph, the machine's figures, the paths between GPUs, the certainty, and how to reproduce the answer."""
    told, sure = answer.provenance, answer.certainty
    figures = told.device.split("; ")
    if any(varies(answer.rows, key) for key in MACHINE):
        # The provenance names one machine of several; only the common source of their figures is printed.
        figures = figures[1:] or figures
    measured, like = told.measured_compute, told.like_questions
    texts = {
        "graph": told.graph["text"],
        "machine": "; ".join((*figures, told.calibration)),
        "compute": "" if measured is None else measured.text,
        "links": "" if measured is None else measured.links,
        "between GPUs": told.between_gpus_basis or "",
        "mini-batches": told.mini_batches or "",
        "certainty": f"{sure.label}; ranges: 90 % of {sure.draws} draws; gcnsim {told.version}, seed {told.seed}, "
        f"scenario {told.scenario_hash[:8]}; {sure.method}",
        "similar questions": "" if like is None else like.text,
    }
    return [(name, plain(text)) for name, text in texts.items() if text]


def more_of(answer: WhatIf) -> str:
    """What a short answer leaves out, and how to see it."""
    share = answer.recommendation.confidence.share
    sure = "" if share is None else f" {_percent(share)}"
    return f"--explain: why; confidence{sure}; what limits it; every step, source and assumption"


def measured_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Measured times with their predictions, and the rows recomputed from them if the assumptions allow them."""
    labels = [label if setting == "" else f"{label} ({setting})" for label, setting in labels_of(answer.results)]
    lines = []
    for item in answer.measured or ():
        lines.append(("measured", plain(item.text)))
        lines += [(plain(label), _again(row)) for label, row in zip(labels, item.rows or (), strict=False)]
    return lines


def _again(row: TimeAgain) -> str:
    time = format_seconds(row.iteration_s)
    return f"{time}{range_text(row.iteration_s_low, row.iteration_s_high)} by this measurement"


def partitions_of(answer: WhatIf) -> list[str]:
    """The results with other partitioner seeds, if requested."""
    variation = answer.partition_seeds
    if variation is None:
        return []
    mean, low, high = map(format_seconds, (variation.mean_s, variation.low_s, variation.high_s))
    seeds = plural(len(variation.seeds), "seed")
    lines = [f"{seeds}: {mean} on average, {low} with the fastest (seed {variation.best}), {high} with the slowest"]
    if variation.numbered_low_s and variation.numbered_high_s and variation.placed_s:
        fast, slow, placed = map(
            format_seconds, (variation.numbered_low_s, variation.numbered_high_s, variation.placed_s)
        )
        lines.append(f"one partition, numbered anew: {fast} to {slow}; its parts placed evenly: {placed}")
    return lines
