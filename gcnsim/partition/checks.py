"""What about a partition makes an answer that rests on it worthless."""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.partition.parts import Part


def partition_warnings(parts: Sequence[Part]) -> tuple[str, ...]:
    """A line where `parts` are degenerate: some without edges, or most edges in one.

    Most: more than halfway from an even share to all of them.
    """
    count = len(parts)
    if count < 2:
        return ()
    said = []
    idle = sum(not part.entries for part in parts)
    if idle:
        said.append(f"{idle} of {count} parts {'has' if idle == 1 else 'have'} nodes but no edges")
    share = max(part.entries for part in parts) / max(sum(part.entries for part in parts), 1)
    if share > (1 + 1 / count) / 2:
        said.append(f"one of {count} parts has {100 * share:.0f} % of the edges")
    return (f"degenerate partition: {', '.join(said)}",) if said else ()
