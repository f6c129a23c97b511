"""The one table from kinds of op to phases."""

from __future__ import annotations

from gcnsim.timeline import PHASE, OpKind, Phase


def test_every_kind_has_a_phase_and_every_phase_a_kind() -> None:
    assert set(PHASE) == set(OpKind)
    assert set(PHASE.values()) == set(Phase)


def test_phases_as_the_glossary_has_them() -> None:
    of = {phase: {str(kind) for kind, found in PHASE.items() if found is phase} for phase in Phase}
    assert of == {
        Phase.SAMPLING: {"sample", "lookup", "cache_refresh", "index"},
        Phase.TRANSFER: {"gather", "pack", "d2h", "wire", "h2d", "unpack", "scatter"},
        Phase.WAIT: {"wait"},
        Phase.COMPUTE: {"aggregate", "update", "loss", "attention", "quantise"},
        Phase.REDUCE: {"allreduce"},
        Phase.OPTIMIZER: {"step"},
    }
