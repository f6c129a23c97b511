"""How long a question will take, before it is answered: by a law fitted to this engine's own runs.

The law of the parts is in `gcnsim.planning.durations`; here is what a question has of them. It is for whoever waits and
for limited waits, never for a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from gcnsim.alternatives import partition_seconds
from gcnsim.errors import plural
from gcnsim.ids import Seconds
from gcnsim.planning.durations import Law, Size, fitted_law, total
from gcnsim.planning.recommend import Rule, candidates, rate_of
from gcnsim.planning.simulated_draws import most_effort
from gcnsim.planning.study_cache import StudyCache, canonical, full_graph
from gcnsim.scenario import ClusterSpec, Scenario
from gcnsim.uncertainty import DRAWS, at_once

LONG_S: Final = 10.0
"""What takes longer is announced."""

DRAWN_S: Final = 5e-9
"""Seconds per stored entry of one drawn graph of a graph at hand: 2 ns of processor time, and what a rate asks for."""

LIMITS: Final = 2
"""Runs of a row without the resource that limits it, about: without all of its kind, and without the one with most."""

STEPS: Final = 6
"""Next steps that are simulated, about."""


class Cost(NamedTuple):
    """What an answer takes. seconds: of the whole; ops: that are simulated; sharings: of links, at most."""

    seconds: Seconds
    ops: float
    sharings: float

    def said(self, what: str) -> str | None:
        """What to say before a wait, of what is asked for in words; None where it is short."""
        if self.seconds <= LONG_S:
            return None
        about = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} minutes"
        work = f"{counted_words(self.ops)} ops, links shared up to {counted_words(self.sharings)} times"
        return f"this takes about {about} ({what}: {work}; Ctrl-C stops it)"


@dataclass(frozen=True, slots=True)
class Work:
    """What a question has to do. settings: asked for; tried: candidates by machine, as many as will be simulated.
    entries: stored ones of a graph at hand, 0 without one. draws: whether draws of the assumptions are simulated;
    steps: whether next steps are; mean: whether graphs are drawn to take their mean. ranked: machines.
    """

    settings: tuple[Scenario, ...]
    tried: tuple[Scenario, ...] = ()
    ranked: tuple[Scenario, ...] = ()
    entries: int = 0
    draws: bool = False
    steps: bool = False
    mean: bool = False

    @classmethod
    def of_run(cls, studies: StudyCache, scenario: Scenario) -> Work:
        """What one scenario has to do, and full-graph training on the same machine, with which it is compared."""
        return cls((scenario, full_graph(scenario)), entries=_entries(studies))

    def cost(self, law: Law, cores: int = 1) -> Cost:
        """About what the answer takes with so many cores."""
        every = dict.fromkeys(canonical(each) for each in (*self.settings, *self.tried))
        sizes = {each: Size.of(each, mean=self.mean) for each in every}
        rows = set(map(canonical, self.settings))
        limits = [size for each, size in sizes.items() if each in rows for _ in range(LIMITS)]
        studies = [law.study_s(size) for size in sizes.values()] + list(map(law.engine_s, limits))
        tried = [sizes[each] for each in dict.fromkeys(map(canonical, self.tried))]
        steps = [size for size in tried for _ in range(STEPS)] if self.steps else []
        step_s = sum(map(law.study_s, steps)) / max(1, len(tried))
        drawn = self._drawn(law, [size for each, size in sizes.items() if at_once(each)]) if self.draws else []
        together = [*sizes.values(), *limits, *drawn]
        ops, sharings = total(law, together)
        more_ops, more_sharings = total(law, steps)
        many = max(1, min(cores, len(sizes)))
        seconds = (
            law.start_s
            + self._recorded_s(list(every))
            + sum(law.part("ranking", Size.of(each)) for each in self.ranked)
            + max(sum(studies) / many, max(studies, default=0.0))
            + sum(map(law.draw_s, drawn)) / max(1, cores)
            + step_s / max(1, min(cores, STEPS))
        )
        share = 1.0 / max(1, len(tried))
        return Cost(seconds, ops + share * more_ops, sharings + share * more_sharings)

    def _drawn(self, law: Law, sizes: Sequence[Size]) -> list[Size]:
        """The runs of the draws of the assumptions that are simulated, by the rule of what is afforded."""
        left: float = most_effort(max((size.gpus for size in sizes), default=0))
        found: list[Size] = []
        for size in sorted(sizes, key=lambda size: size.ops * law.iterations(size)):
            effort = DRAWS * size.ops * law.iterations(size)
            if effort > left:
                break
            left -= effort
            found += [replace(size, drawn=size.drawn and size.tau > 0)] * (DRAWS + 1)
        return found

    def _recorded_s(self, every: Sequence[Scenario]) -> Seconds:
        """Cutting a graph at hand, and drawing from it for every rate and cache."""
        if not self.entries:
            return 0.0
        cuts = {(each.cluster.gpus, each.partition): each for each in every}
        drawings = {(each.cluster.gpus, each.method.epsilon, each.method.rate): each for each in every}
        graphs = sum(each.run.iterations for (_, epsilon, rate), each in drawings.items() if min(epsilon, rate) < 1.0)
        cut = sum(partition_seconds(self.entries, each.partition) for each in cuts.values())
        return cut + graphs * self.entries * DRAWN_S


def work_of(studies: StudyCache, asked: Sequence[Scenario], clusters: Sequence[ClusterSpec], rule: Rule) -> Work:
    """What a what-if has to do for `asked`, its candidates on each of `clusters` and the next steps of one of them."""
    machines = tuple(replace(asked[0], cluster=cluster) for cluster in clusters)
    return Work(
        settings=(*asked, *map(full_graph, machines)),
        tried=tuple(each for machine in machines for each in typical(machine, rule)),
        ranked=machines,
        entries=_entries(studies),
        draws=True,
        steps=True,
    )


def _entries(studies: StudyCache) -> int:
    graph = studies.accesses.graph
    return 0 if graph is None else graph.entries


def typical(scenario: Scenario, rule: Rule) -> list[Scenario]:
    """The candidates that will be simulated on the scenario's machine, about, before they are ranked: of each method
    and staleness the one that draws least."""
    found: dict[tuple[str, int], Scenario] = {}
    for each in candidates(scenario, rule):
        key = each.method.name, each.method.tau
        if key not in found or rate_of(each.method) < rate_of(found[key].method):
            found[key] = each
    return list(found.values())


def counted_words(number: float) -> str:
    """A large number in words of one or two digits: 3.1 million."""
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= size:
            return f"{number / size:.2g} {word}" if number < 99.5 * size else f"{number / size:.0f} {word}"
    return f"{number:.0f}"


def announced(work: Work, cores: int, what: str = "the next steps") -> str | None:
    """What to say before a long wait for `work` and, in words, what else is done; None where it is short."""
    asked = plural(len(dict.fromkeys((*work.settings, *work.tried))), "setting")
    return work.cost(fitted_law(), cores).said(f"{asked} and {what}" if what else asked)
