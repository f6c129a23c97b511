"""How closely a question is answered: rungs of a ladder, each less precise and sooner done than the one before.

What a rung leaves out makes the intervals of rows wider, by what that was measured to change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from gcnsim.boundary import AccessCounts
from gcnsim.scenario import AUTO, COARSE, Scenario
from gcnsim.sources import RangeEnd
from gcnsim.sources.source import SourceView
from gcnsim.uncertainty import at_once, mean_counts

FEW_GRAPHS: Final = 15
FEWER_GRAPHS: Final = 8
MEAN_OF: Final = 3
"""Most drawn graphs of a setting on rungs that draw fewer; on the last of them only their mean is simulated."""

WIDER_DRAWS: Final = 0.043
WIDER_GRAPHS: Final = {FEW_GRAPHS: 0.001, FEWER_GRAPHS: 0.005, MEAN_OF: 0.01}
"""By what share of them the ends of intervals are moved outwards: where draws are estimated, and where fewer graphs are
drawn. In nine of ten rows that is what the ends of the less precise interval need to hold the precise one
(`studies.precision_costs`, docs/scale.md). What coarse runs are wrong by is in their intervals already; fewer
candidates and no next steps change no row."""


@dataclass(frozen=True, slots=True)
class Rung:
    """How closely a question is answered. draws: whether draws of the assumptions are simulated. graphs: most drawn
    graphs of a setting; mean: only their mean is simulated. coarse: links are shared coarsely where nobody asked for
    exactness. most: candidates tried on each machine; None for all that are worth it. steps: next steps are tried.
    """

    draws: bool = True
    graphs: int | None = None
    mean: bool = False
    coarse: bool = False
    most: int | None = None
    steps: bool = True

    def wider(self, scenario: Scenario) -> float:
        """By what share of them the ends of a setting's interval are moved outwards."""
        drawn = self.graphs is not None and not scenario.method.sampling().whole
        return (WIDER_DRAWS if not self.draws and at_once(scenario) else 0.0) + (
            WIDER_GRAPHS[self.graphs] if self.graphs is not None and drawn else 0.0
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """In words, what the whole answer has besides."""
        graphs = f"at most {self.graphs} graphs drawn of a setting"
        if self.mean:
            graphs = f"only the mean of {self.graphs} drawn graphs simulated"
        told = {
            "draws of the assumptions estimated, not simulated": not self.draws,
            graphs: self.graphs is not None,
            "links shared coarsely": self.coarse,
            f"{self.most} candidate tried on each machine": self.most is not None,
            "no next steps": not self.steps,
        }
        return tuple(text for text, is_so in told.items() if is_so)

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario as it is simulated on this rung."""
        run = scenario.run
        if self.graphs is not None:
            run = replace(run, iterations=min(run.iterations, self.graphs))
        if self.coarse and run.fidelity == AUTO:
            run = replace(run, fidelity=COARSE)
        return scenario if run == scenario.run else replace(scenario, run=run)


def ladder(*, coarse: bool, graphs: bool = True, runs: bool = False) -> tuple[Rung, ...]:
    """The rungs, the most precise first. coarse, graphs: whether coarse runs and fewer graphs are among them; runs: of
    single runs, which have neither draws nor candidates nor next steps to leave out."""
    rungs = [Rung()]

    def down(**less: bool | int) -> None:
        rungs.append(replace(rungs[-1], **less))  # type: ignore[arg-type]

    if not runs:
        down(draws=False)
    if graphs:
        down(graphs=FEW_GRAPHS)
        down(graphs=FEWER_GRAPHS)
        down(graphs=MEAN_OF, mean=True)
    if coarse:
        down(coarse=True)
    if not runs:
        down(most=1)
        down(steps=False)
    return tuple(rungs)


class MeanGraph(SourceView):
    """The accesses of `source`, of all drawn graphs the mean."""

    def counts(self, scenario: Scenario, features: int, corner: RangeEnd) -> AccessCounts:
        """Access counts of one graph."""
        return mean_counts(self.source.counts(scenario, features, corner))
