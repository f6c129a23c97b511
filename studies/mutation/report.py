"""Tables of killed mutants by room and by kind, and the survivors with what was changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from studies.mutation.trial import Result


def report(results: Sequence[Result]) -> str:
    """Everything there is to read, in lines."""
    survivors = [result for result in results if not result.killed]
    lines = [*table("room", results, lambda result: result.room), ""]
    lines += [*table("kind", results, lambda result: result.mutation.kind), ""]
    lines += [f"{_count(results)} killed; {len(survivors)} survivors:" if survivors else f"{_count(results)} killed"]
    for survivor in survivors:
        text = "no test of its room runs it" if not survivor.tests else f"{survivor.tests} tests run it"
        lines += [
            f"{survivor.mutation.path}:{survivor.mutation.line} {survivor.mutation.kind}, {text}",
            survivor.diff,
            "",
        ]
    return "\n".join(lines)


def table(head: str, results: Sequence[Result], name: Callable[[Result], str]) -> list[str]:
    """One line per name: how many of its mutants were killed."""
    names = sorted({name(result) for result in results})
    width = max(map(len, [head, *names]))
    return [f"{one:{width}}  {_count([result for result in results if name(result) == one])}" for one in names]


def _count(results: Sequence[Result]) -> str:
    killed = sum(result.killed for result in results)
    return f"{killed:3} of {len(results):3} ({killed / max(1, len(results)):4.0%})"
