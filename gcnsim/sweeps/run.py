"""A sweep from its question to its results: what is left to do, in chunks, to an executor, into the folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from gcnsim.engine import engine
from gcnsim.errors import GcnsimError, ScenarioError, plural
from gcnsim.graph import graph_notes, load_graph, two_columns
from gcnsim.sweeps.executors import Executor
from gcnsim.sweeps.folder import MANIFEST, Folder, alone, begin, refuse_foreign
from gcnsim.sweeps.points import Point, points_of
from gcnsim.sweeps.prices import payload_of
from gcnsim.sweeps.question import Question
from gcnsim.sweeps.work import DEVICE, FILE_FIELDS, LOST, REFUSED, file_hash, files_of, versions

Progress: TypeAlias = Callable[[int, int], object]
"""Told how many points are done, and of how many."""

CHUNK: Final = 32
"""Most points of a chunk: what is lost where a sweep is killed, on each core."""

LIMIT: Final = 10_000
"""Most points of a sweep that nobody confirmed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The points of a question."""

    question: Question
    points: tuple[Point, ...]

    @property
    def refused(self) -> int:
        """How many of them contradict themselves."""
        return sum(each.scenario is None for each in self.points)


def plan(question: Question, limit: int | None = LIMIT) -> Plan:
    """The points. limit: None for any number. Raises ScenarioError for more than that, for what has no point, and
    for a price of what no point has.
    """
    most = question.combinations
    if limit is not None and most > 50 * limit:
        raise _too_many(most, "up to ", limit)
    points = points_of(question)
    question.prices.refuse_idle(_devices(points))
    if limit is not None and len(points) > limit:
        raise _too_many(len(points), "", limit)
    return Plan(question, tuple(points))


def _devices(points: Sequence[Point]) -> set[str]:
    clusters = (each.scenario.cluster for each in points if each.scenario is not None)
    return {name for cluster in clusters for name in (cluster.devices or (cluster.device,))}


def _too_many(count: int, about: str, limit: int) -> ScenarioError:
    return ScenarioError(f"--limit: the sweep has {about}{plural(count, 'point')}; allowed without --yes: {limit:,}")


def run(
    question: Question,
    path: str | Path,
    executor: Callable[[], Executor],
    limit: int | None = LIMIT,
    progress: Progress = lambda done, total: None,
    notice: Callable[[str], object] = lambda line: None,
) -> Folder:
    """Answer every point of the question that the folder does not have yet.

    executor: made only where there is something to do. notice: of what is odd about the graphs of the points.
    Raises GcnsimError.
    """
    # A question without points, files that are not there, a foreign folder and an executor that cannot be had leave
    # nothing behind.
    refuse_foreign(path)
    points = () if (Path(path) / MANIFEST).exists() else plan(question, limit).points
    files = {each: file_hash(each) for each in files_asked(question)}
    if any(each.scenario is not None for each in points):
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
            folder.keep(refused, [{"point": each.index, "state": REFUSED, "reason": each.refused} for each in refused])
        count = len(done) + len(refused)
        _say_graphs(left, notice)
        for some, rows in _answered(question, [each for each in left if each.scenario is not None], executor):
            folder.keep(some, rows)
            count += len(some)
            progress(count, folder.points)
        folder.finish()
    return folder


def _say_graphs(points: Sequence[Point], notice: Callable[[str], object]) -> None:
    works = (each.scenario.workload for each in points if each.scenario is not None)
    for path, ids, ends in dict.fromkeys((work.graph, work.ids, work.ends) for work in works):
        with suppress(GcnsimError):  # of a graph that cannot be used the points say it
            columns = None if ends is None else two_columns(ends, "workload.ends")
            for line in graph_notes(load_graph(path, ids, columns)) if path is not None else ():
                notice(line)


def files_asked(question: Question) -> list[str]:
    """The files that the question's points name: what is in them is part of what is asked."""
    varied = {axis.path: axis.values for axis in question.axes}
    found = []
    for field in (*FILE_FIELDS, DEVICE):
        section, _, key = field.partition(".")
        own = question.base.get(section)
        values = varied.get(field, (own.get(key) if isinstance(own, Mapping) else None,))
        found += [each for each in values if isinstance(each, str) and (field != DEVICE or each.endswith(".yaml"))]
    return list(dict.fromkeys(found))


def _answered(
    question: Question, left: Sequence[Point], executor: Callable[[], Executor]
) -> Iterator[tuple[list[Point], list[dict[str, Any]]]]:
    """Chunks with their rows, in any order. Raises ScenarioError for a worker that would answer otherwise."""
    if not left:
        return
    chunks = list(chunked(left))
    files = {path: file_hash(path) for path in dict.fromkeys(path for each in left for path in files_of(_of(each)))}
    asked: dict[str, Any] = {"versions": versions(), "files": files, "base": dict(question.base)}
    asked |= {"interval": question.interval, "fits": question.fits, "prices": payload_of(question.prices) or None}
    texts = [json.dumps(asked | {"points": [[each.index, each.values] for each in chunk]}) for chunk in chunks]
    engine()  # found before processes are forked, so once for all of them
    for place, text in executor().answers(texts):
        chunk = chunks[place]
        if text is None:
            reason = "its worker ended each time it was asked"
            yield chunk, [{"point": each.index, "state": LOST, "reason": reason} for each in chunk]
            continue
        found = json.loads(text)
        if "mismatch" in found:
            raise ScenarioError(f"--executor: {found['mismatch']}")
        yield chunk, found["rows"]


def _of(point: Point) -> Any:
    assert point.scenario is not None
    return point.scenario


def chunked(points: Sequence[Point]) -> Iterator[list[Point]]:
    """The points in chunks that share their counts: of the same work on as many GPUs, by the same method."""
    groups: dict[Any, list[Point]] = {}
    for point in points:
        groups.setdefault(group_of(point), []).append(point)
    for group in sorted(groups.values(), key=lambda group: -_effort(group[0])):
        for start in range(0, len(group), CHUNK):
            yield group[start : start + CHUNK]


def group_of(point: Point) -> Any:
    """What points of a chunk have in common."""
    scenario = _of(point)
    cluster = scenario.cluster
    return (scenario.workload, scenario.partition, scenario.run, cluster.gpus, cluster.gpus_per_server, scenario.method)


def _effort(point: Point) -> int:
    return int(_of(point).cluster.gpus ** 2)
