"""The end of a run for people: the final object as an aligned table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gcnsim.terminal.tables import aligned
from gcnsim.units import format_bytes, format_fraction, format_seconds

_TITLES: Final = (
    ("iteration_s", "iteration (mean)"),
    ("compute_s", "compute"),
    ("wait_s", "waiting"),
    ("transfer_s", "transfers"),
    ("sampling_s", "sampling"),
    ("reduce_s", "all-reduce"),
    ("optimizer_s", "optimizer"),
)


def breakdown(final: Mapping[str, Any]) -> str:
    """The table of a run, without a newline at its end.

    final: method, workers, iterations, test_accuracy, val_accuracy, final_loss, iteration_s, compute_s, wait_s,
    transfer_s, sampling_s, bytes_sent (by all workers in the whole run), cache_hit_rate, seconds; reduce_s,
    optimizer_s, evaluation_s if known. What is None shows as `-`.
    """
    workers = final["workers"]
    head = f"{final['method']}: {final['iterations']:,} iterations on {workers} worker{'s' if workers != 1 else ''}"
    lines = [f"{head} in {format_seconds(final['seconds'])}", ""]
    loss = final["final_loss"]
    results = [
        ("test accuracy", _share(final["test_accuracy"])),
        ("validation accuracy", _share(final["val_accuracy"])),
        ("final loss", "-" if loss is None else f"{loss:.4g}"),
        ("bytes sent", _sent(final)),
        ("cache hit rate", _share(final["cache_hit_rate"])),
    ]
    if final.get("evaluation_s") is not None:
        results.append(("evaluation", format_seconds(final["evaluation_s"])))
    whole = final["iteration_s"]
    parts = [
        (title, "-" if final[key] is None else format_seconds(final[key]), _part(final[key], whole))
        for key, title in _TITLES
        if key in final
    ]
    lines += [*aligned(results, left=2, indent=2), "", "Per iteration, slowest worker; parts may overlap:"]
    return "\n".join([*lines, *aligned(parts, indent=2)])


def _part(value: float | None, whole: float | None) -> str:
    return "" if value is None or not whole else f"{100 * value / whole:.1f} %"


def _share(value: float | None) -> str:
    return "-" if value is None else format_fraction(value)


def _sent(final: Mapping[str, Any]) -> str:
    total = final["bytes_sent"]
    if total is None:
        return "-"
    return f"{format_bytes(total)}, {format_bytes(total / max(1, final['iterations']))} an iteration"
