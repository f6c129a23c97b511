"""Run a sweep: send the remaining points in chunks to an executor and store the rows in the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import GcnsimError, ScenarioError, plural
from gcnsim.engine import engine
from gcnsim.graph import graph_notes, load_graph, two_columns
from gcnsim.planning.sweep_folder import MANIFEST, Folder, alone, begin, refuse_foreign
from gcnsim.planning.sweep_points import Point, points_of
from gcnsim.planning.sweep_question import Question, payload_of
from gcnsim.planning.sweep_work import DEVICE, LOST, REFUSED, Executor, file_hash, files_of, versions
from gcnsim.scenario import ClusterSpec
from gcnsim.scenario.load import FILE_FIELDS
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.assumed import refuse_unused_figures

Progress: TypeAlias = Callable[[int, int], object]
"""A callback that receives the number of finished points and the total."""

CHUNK: Final = 32
"""The most points of a chunk, i.e. the most that one core loses if a sweep is killed."""

LIMIT: Final = 10_000
"""The most points of a sweep without confirmation."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The points of a question."""

    question: Question
    points: tuple[Point, ...]

    @property
    def refused(self) -> int:
        """The number of contradictory points."""
        return sum(point.scenario is None for point in self.points)


def plan(question: Question, limit: int | None = LIMIT) -> Plan:
    """Return the points of a question. limit: None for any number.

    Raises ScenarioError for more points than the limit, for no point, and for a price that no point uses.
    """

    def refuse_more(count: int, allowed: int, about: str = "") -> None:
        if limit is not None and count > allowed:
            raise ScenarioError(
                f"--limit: the sweep has {about}{plural(count, 'point')}; allowed without --yes: {limit:,}"
            )

    refuse_more(question.combinations, 50 * (limit or 0), "up to ")
    points = points_of(question)
    clusters = [*dict.fromkeys(point.scenario.cluster for point in points if point.scenario is not None)]
    question.prices.refuse_idle({name for cluster in clusters for name in (cluster.devices or (cluster.device,))})
    _refuse_figures([cluster for cluster in clusters if cluster.figures])
    refuse_more(len(points), limit or 0)
    return Plan(question, tuple(points))


def _refuse_figures(clusters: Sequence[ClusterSpec]) -> None:
    """Raise ScenarioError for a figure that changes nothing at any point."""
    machines = []
    for cluster in clusters:
        with suppress(GcnsimError):  # Its point says why there is no such machine.
            machines.append(resolve_machine(cluster))
    refuse_unused_figures(machines)


def run(
    question: Question,
    path: str | Path,
    executor: Callable[[], Executor],
    limit: int | None = LIMIT,
    progress: Progress = lambda done, total: None,
    notice: Callable[[str], object] = lambda line: None,
) -> Folder:
    """Answer every point of the question that the folder lacks.

    executor: a function that creates the executor; called only if points remain. notice: a callback for warnings about
    the graphs. Raises GcnsimError.
    """
    # Check the question, its files, the folder and the executor before anything is written.
    refuse_foreign(path)
    points = () if (Path(path) / MANIFEST).exists() else plan(question, limit).points
    files = {file: file_hash(file) for file in files_asked(question)}
    if any(point.scenario is not None for point in points):
        ready = executor()
        executor = lambda: ready  # noqa: E731
    with alone(path):
        folder = begin(path, question, len(points), files)
        done = folder.done()
        if len(done) == folder.points:
            folder.finish()
            return folder
        left = [point for point in points or plan(question, None).points if point.index not in done]
        progress(len(done), folder.points)
        refused = [point for point in left if point.scenario is None]
        if refused:
            folder.keep(refused, [{"point": one.index, "state": REFUSED, "reason": one.refused} for one in refused])
        count = len(done) + len(refused)
        _say_graphs(left, notice)
        for some, rows in _answered(question, [point for point in left if point.scenario is not None], executor):
            folder.keep(some, rows)
            count += len(some)
            progress(count, folder.points)
        folder.finish()
    return folder


def _say_graphs(points: Sequence[Point], notice: Callable[[str], object]) -> None:
    works = (point.scenario.workload for point in points if point.scenario is not None)
    for path, ids, ends in dict.fromkeys((work.graph, work.ids, work.ends) for work in works):
        with suppress(GcnsimError):  # If a graph is unusable, its points report it.
            columns = None if ends is None else two_columns(ends, "workload.ends")
            for line in graph_notes(load_graph(path, ids, columns)) if path is not None else ():
                notice(line)


def files_asked(question: Question) -> list[str]:
    """The files that the points name; the question includes their contents."""
    varied = {axis.path: axis.values for axis in question.axes}
    files = []
    for field in (*FILE_FIELDS, DEVICE):
        section, _, key = field.partition(".")
        own = question.base.get(section)
        values = varied.get(field, (own.get(key) if isinstance(own, Mapping) else None,))
        files += [value for value in values if isinstance(value, str) and (field != DEVICE or value.endswith(".yaml"))]
    return list(dict.fromkeys(files))


def _answered(
    question: Question, left: Sequence[Point], executor: Callable[[], Executor]
) -> Iterator[tuple[list[Point], list[dict[str, Any]]]]:
    """The chunks with their rows, in any order. Raises ScenarioError for a worker of other versions or files."""
    if not left:
        return
    chunks = list(chunked(left))
    paths = (path for point in left if point.scenario is not None for path in files_of(point.scenario))
    files = {path: file_hash(path) for path in dict.fromkeys(paths)}
    shared: dict[str, Any] = {"versions": versions(), "files": files, "base": dict(question.base)}
    shared |= {"interval": question.interval, "fits": question.fits, "prices": payload_of(question.prices) or None}
    texts = [json.dumps(shared | {"points": [[point.index, point.values] for point in chunk]}) for chunk in chunks]
    engine()  # Computed before processes fork, so once for all of them.
    for place, text in executor().answers(texts):
        chunk = chunks[place]
        if text is None:
            reason = "its worker process died each time"
            yield chunk, [{"point": one.index, "state": LOST, "reason": reason} for one in chunk]
            continue
        answer = json.loads(text)
        if "mismatch" in answer:
            raise ScenarioError(f"--executor: {answer['mismatch']}")
        yield chunk, answer["rows"]


def chunked(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Split points into chunks that share counts: same workload, number of GPUs and method. Most GPUs first."""
    groups: dict[tuple[Any, ...], list[Point]] = {}
    for point in points:
        scenario = point.scenario
        assert scenario is not None
        cluster, source = scenario.cluster, (scenario.workload, scenario.partition, scenario.run)
        groups.setdefault((-cluster.gpus, source, cluster.gpus_per_server, scenario.method), []).append(point)
    for _, group in sorted(groups.items(), key=lambda item: item[0][0]):
        for start in range(0, len(group), CHUNK):
            yield group[start : start + CHUNK]
