"""Tables of killed mutants by room and by kind, and the survivors with what was changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from studies.mutation.trial import Result


def report(results: Sequence[Result]) -> str:
    """Everything there is to read, in lines."""
    survivors = [each for each in results if not each.killed]
    lines = [*table("room", results, lambda each: each.room), ""]
    lines += [*table("kind", results, lambda each: each.mutation.kind), ""]
    lines += [f"{_count(results)} killed; {len(survivors)} survivors:" if survivors else f"{_count(results)} killed"]
    for each in survivors:
        told = "no test of its room runs it" if not each.tests else f"{each.tests} tests run it"
        lines += [f"{each.mutation.path}:{each.mutation.line} {each.mutation.kind}, {told}", each.diff, ""]
    return "\n".join(lines)


def table(head: str, results: Sequence[Result], name: Callable[[Result], str]) -> list[str]:
    """One line per name: how many of its mutants were killed."""
    names = sorted({name(each) for each in results})
    width = max(map(len, [head, *names]))
    return [f"{one:{width}}  {_count([each for each in results if name(each) == one])}" for one in names]


def _count(results: Sequence[Result]) -> str:
    killed = sum(each.killed for each in results)
    return f"{killed:3} of {len(results):3} ({killed / max(1, len(results)):4.0%})"
