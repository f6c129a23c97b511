"""The arrays of the kernel's two blocks by name: the counterpart of `memory.packed`, in the same order."""

from __future__ import annotations

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.engine.kernel.memory import (
    Calendar,
    Flows,
    Grains,
    Known,
    Links,
    Machines,
    Messages,
    Ops,
    State,
    real,
    whole,
)


def ops_of(i: IntArray, f: FloatArray) -> Ops:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Ops(
        whole(i, 0), whole(i, 1), whole(i, 2), whole(i, 3), whole(i, 4), whole(i, 5), whole(i, 6), whole(i, 7),
        whole(i, 8), whole(i, 9), whole(i, 10), whole(i, 11), real(i, f, 0),
    )  # fmt: skip


def calendar_of(i: IntArray, f: FloatArray) -> Calendar:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Calendar(
        whole(i, 12), whole(i, 13), whole(i, 14), whole(i, 15), whole(i, 16), whole(i, 17), whole(i, 18),
        whole(i, 19), whole(i, 20), whole(i, 21), whole(i, 22), whole(i, 23), whole(i, 24), whole(i, 25),
        whole(i, 26), whole(i, 27),
    )  # fmt: skip


def links_of(i: IntArray, f: FloatArray) -> Links:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Links(
        whole(i, 28), whole(i, 29), whole(i, 30), whole(i, 31), whole(i, 32), whole(i, 33), whole(i, 34),
        whole(i, 35), whole(i, 36), whole(i, 37), whole(i, 38), whole(i, 39), whole(i, 40), whole(i, 41),
        whole(i, 42), whole(i, 43), whole(i, 44), whole(i, 45), whole(i, 46), whole(i, 47), whole(i, 48),
        whole(i, 49), whole(i, 50), whole(i, 51), whole(i, 52), whole(i, 53), whole(i, 54), whole(i, 55),
        whole(i, 56), real(i, f, 1), real(i, f, 2), real(i, f, 3), real(i, f, 4), real(i, f, 5), real(i, f, 6),
        real(i, f, 7), real(i, f, 8),
    )  # fmt: skip


def flows_of(i: IntArray, f: FloatArray) -> Flows:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Flows(
        whole(i, 57), whole(i, 58), whole(i, 59), whole(i, 60), whole(i, 61), whole(i, 62), whole(i, 63),
        whole(i, 64), whole(i, 65), real(i, f, 9), real(i, f, 10), real(i, f, 11), real(i, f, 12),
        real(i, f, 13), real(i, f, 14),
    )  # fmt: skip


def messages_of(i: IntArray, f: FloatArray) -> Messages:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Messages(
        whole(i, 66), whole(i, 67), whole(i, 68), whole(i, 69), real(i, f, 15),
    )  # fmt: skip


def machines_of(i: IntArray, f: FloatArray) -> Machines:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Machines(
        whole(i, 70), whole(i, 71), whole(i, 72), whole(i, 73), whole(i, 74), whole(i, 75), whole(i, 76),
        whole(i, 77), whole(i, 78), whole(i, 79), whole(i, 80), whole(i, 81), whole(i, 82), whole(i, 83),
        whole(i, 84), whole(i, 85), whole(i, 86), whole(i, 87), whole(i, 88), real(i, f, 16), real(i, f, 17),
        real(i, f, 18), real(i, f, 19), real(i, f, 20),
    )  # fmt: skip


def grains_of(i: IntArray, f: FloatArray) -> Grains:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Grains(
        whole(i, 89), whole(i, 90), whole(i, 91), whole(i, 92), whole(i, 93), real(i, f, 21), real(i, f, 22),
    )  # fmt: skip


def known_of(i: IntArray, f: FloatArray) -> Known:
    """Its arrays among those of the integers `i` and the floats `f`."""
    return Known(
        whole(i, 94), real(i, f, 23),
    )  # fmt: skip


def state_of(i: IntArray, f: FloatArray) -> State:
    """All arrays of the blocks of integers `i` and floats `f`."""
    return State(
        ops_of(i, f),
        calendar_of(i, f),
        links_of(i, f),
        flows_of(i, f),
        messages_of(i, f),
        machines_of(i, f),
        grains_of(i, f),
        known_of(i, f),
    )
