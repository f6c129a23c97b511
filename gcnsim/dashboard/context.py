"""What an answer is of, and how far it is to be trusted: the line beneath a headline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from gcnsim.core.errors import plural
from gcnsim.dashboard.state import PageQuestion
from gcnsim.hardware import device, devices
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.report.answer.rows import plain
from gcnsim.report.answer.sentences import UNCALIBRATED
from gcnsim.results import Row
from gcnsim.scenario import ClusterSpec

CALIBRATED: Final = "CALIBRATED"
MEASURED: Final = "MEASURED"
PREDICTED: Final = "PREDICTED"
FIRST: Final = PageQuestion()
NAMED: Final = 2
"""Settings of recorded runs that are named; more are counted."""


class Context(NamedTuple):
    """badge: how far an answer is to be trusted, in capitals; of: dataset, machine and what else was asked."""

    badge: str
    of: str


def servers_for(gpus: int, each: object = None) -> int | None:
    """Servers of so many GPUs; each: GPUs in one of them, None for the usual number. None where that is no number."""
    text = str(ClusterSpec().gpus_per_server if each is None else each)
    return -(-gpus // int(text)) if text.isdecimal() else None


def machine_text(row: Row, servers: int | None, host: str = "", device_name: str = "") -> str:
    """Dataset, GPUs and servers of a row; servers: None if not known; device_name: in place of the catalogue's."""
    known = device(row.device).title.removeprefix("NVIDIA ") if row.device in devices() else row.device
    inside = "" if servers is None else f" in {plural(servers, 'server')}"
    return plain(f"{row.dataset}, {row.gpus} x {device_name or known}{inside}{f' ({host})' if host else ''}")


def setting_text(row: Row) -> str:
    """Method and knobs of a row."""
    return plain(", ".join((row.method, *row.knobs)))


def of_question(
    rows: Sequence[Row], measured: MeasuredCompute | None = None, question: PageQuestion = FIRST, read: str = ""
) -> list[Any]:
    """What the rows are of, how far they are to be trusted, and what was read of an own graph, which `question` names
    as its user does."""
    from dash import html  # processes of jobs need none of it

    name = "" if measured is None else measured.device["name"]
    badge, basis = UNCALIBRATED, "computed from datasheets and assumptions"
    if question.calibration:
        badge, basis = CALIBRATED, f"computed with {question.calibration}"
    if measured is not None:
        badge, basis = f"MEASURED on {name}", "compute measured, links assumed"
    row = replace(rows[0], dataset=question.graph or rows[0].dataset)
    servers = None
    if question.gpus_per_server or not question.host:
        servers = servers_for(row.gpus, question.gpus_per_server or None)
    shown = machine_text(row, servers, question.host, name), *question.links, question.inject
    return [
        html.Strong(badge, className="badge"),
        f"{', '.join(filter(None, shown))}: {basis}",
        *([html.Br(), plain(read)] if read else []),
    ]


def of_run(title: str, calibration: str | None) -> Context:
    """Of a recorded run beside its prediction."""
    return Context(MEASURED, plain(f"{title}; the prediction: {UNCALIBRATED if calibration is None else CALIBRATED}"))


def of_sweep(question: Any, record: Mapping[str, Any], row: Row) -> Context:
    """Of a point of a sweep, as its table has it."""
    prefix = "cluster."
    varied = {name.removeprefix(prefix): value for name, value in record.items() if name.startswith(prefix)}
    cluster = {**question.base.get("cluster", {}), **varied}
    given = {name for name, value in cluster.items() if value is not None}
    badge = CALIBRATED if "calibration" in given else UNCALIBRATED
    host = str(cluster["host"]) if "host" in given else ""
    servers = None if host else servers_for(row.gpus, cluster.get("gpus_per_server"))
    text = f"{machine_text(row, servers, host)} at {row.bandwidth}, {setting_text(row)}"
    return Context(f"{MEASURED} compute" if "measured_compute" in given else badge, text)


def of_comparison(found: Mapping[str, Any]) -> Context:
    """Of both sides of the payload of a comparison."""
    from gcnsim.evidence.difference import MEASURED as MEASURED_KINDS

    sides = [found[key] for key in "ab"]
    kinds = {MEASURED if side["kind"] in MEASURED_KINDS else PREDICTED for side in sides}
    text = "; ".join(f"{key}: {side['label']}, {side['setting']}" for key, side in zip("AB", sides, strict=True))
    return Context(" and ".join(sorted(kinds)), plain(text))


def of_validation(found: Mapping[str, Any]) -> Context:
    """Of the recorded runs of the payload of a validation."""
    from gcnsim.report.evidence import validation_label

    settings = list(dict.fromkeys(row["setting"] for row in found["rows"]))
    more = f"; {len(settings) - NAMED} more" if len(settings) > NAMED else ""
    badge = validation_label(found).partition(":")[0] or CALIBRATED
    return Context(badge, plain("; ".join(settings[:NAMED]) + more))
