"""The answer in sentences: what to use, how sure that is, what a step brings."""

from __future__ import annotations

from gcnsim.planning.payload import in_gbps, setting_text
from gcnsim.planning.recommend import Choice
from gcnsim.planning.steps import Step
from gcnsim.planning.workshop import Estimate
from gcnsim.units import format_seconds

SAME = 0.01
"""Changes of less are about the same."""


def verdict(chosen: tuple[Estimate, float | None], *, several: bool, label: str) -> str:
    """One sentence: the recommended setting, its time with the interval, how much faster than full-graph training."""
    estimate, baseline = chosen
    scenario = estimate.scenario
    cluster = scenario.cluster
    where = f" on {cluster.gpus} x {cluster.device} at {in_gbps(cluster.bandwidth)}" if several else ""
    low, high = format_seconds(estimate.low_s), format_seconds(estimate.high_s)
    text = (
        f"Use {setting_text(scenario.method)}{where}: {format_seconds(estimate.iteration_s)} per iteration "
        f"({low} to {high})"
    )
    if baseline is not None and scenario.method.name != "full-graph":
        epochs = "" if estimate.result.per_epoch == 1 else " per epoch"
        times = baseline / estimate.epoch_s
        text += f", {times:.2g} times as fast as full-graph training{epochs}"
    if estimate.result.fits is False:
        text += "; it does not fit the GPUs' memory"
    return f"{text}."


def confidence_text(choice: Choice) -> str:
    """How often the recommended setting wins among those that were simulated and may be recommended."""
    if len(choice.pool) == 1:
        return "no other setting that may be recommended was simulated"
    return (
        f"the fastest of {len(choice.pool)} settings, or within 3 % of it, in {100 * choice.share:.0f} % of what the "
        "assumptions allow"
    )


def step_text(step: Step) -> str:
    """What a step brings: `374 ms (42 % shorter, 36 to 44 %)`."""
    time = format_seconds(step.iteration_s)
    if not step.distinguishable:
        return f"{time} (cannot be told apart)"
    word = "shorter" if step.gain > 0 else "longer"
    ends = sorted((abs(step.gain_low), abs(step.gain_high)))
    if abs(step.gain) < SAME:
        return f"{time} (about the same)"
    text = f"{100 * abs(step.gain):.0f} % {word}, {100 * ends[0]:.0f} to {100 * ends[1]:.0f} %"
    fits = "; does not fit the memory" if step.fits is False else ""
    return f"{time} ({text}{fits})"
