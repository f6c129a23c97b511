"""Shipped profiles with the means that were counted: `python -m studies.rescaled_profiles [NAME ...] [--write]`.

A profile of a surrogate has the shape of its parts: who borders on whom, how cross edges are spread. Its means are
those of a drawn graph. Here they become the dataset's: boundary over inner nodes as printed, or by the law through what
is printed (`boundary_at`); entries that cross as data/surrogates.yaml says is likely; of Reddit the largest boundary
and who sends most as counted. Workers keep their order and their share of everything else. Of profiles that have these
means already nothing changes but rounding. Without --write it prints what would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.boundary import StoredProfile, shipped_parts, shipped_profile, write_profile
from gcnsim.boundary.packaged import FOLDER
from gcnsim.boundary.rescale import means_of, resized, with_senders
from gcnsim.graph.generate import surrogate_facts, surrogates
from gcnsim.workload import boundary_at, dataset

LARGEST: Final = {("reddit", 2): 1.046, ("reddit", 4): 1.462}
"""Boundary nodes of the largest part over the mean: METIS, objective vol, logs of github
saurabhbajaj123/GNN_minibatch_vs_fullbatch at 1559508; of two parts, which need what the other sends, `SENDERS`."""

SENDERS: Final = {"reddit": {4: 1.052, 8: 1.296, 16: 1.410, 32: 1.448}}
"""Rows that the part sends that sends most over the mean, from 4 parts on: objective cut, plotting/data_transfer there;
between them straight in the logarithm of the parts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Rescale the named datasets' profiles, all by default; return the exit code."""
    known = [name for name in surrogates() if shipped_parts(name)]
    parser = argparse.ArgumentParser(description="Shipped profiles with the means that were counted.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/profiles")
    asked = parser.parse_args(arguments)
    for name in asked.names or known:
        found = {parts: rescaled(name, parts) for parts in shipped_parts(name)}
        residuals = {
            str(row.partitions): round(float(found[row.partitions].boundary_nodes.mean()) / row.boundary - 1.0, 6)
            for row in dataset(name).boundary
            if row.partitions in found
        }
        for parts, profile in found.items():
            told(name, profile)
            if asked.write:
                origin = replace(profile.origin, residuals=residuals)
                write_profile(FOLDER / f"{name}-{parts}.profile", replace(profile, origin=origin))
    return 0


def rescaled(name: str, parts: int) -> StoredProfile:
    """The shipped profile with the means of its dataset, as open in its cross edges as those are."""
    facts, profile = dataset(name), shipped_profile(name, parts)
    own, share = means_of(profile), surrogate_facts(name).cross_edges
    inner, boundary, _ = boundary_at(facts, parts) if facts.boundary else (1.0, own.boundary, "")
    ratio = boundary / inner
    largest = LARGEST.get((name, parts), own.largest[2])
    wanted = replace(own, boundary=ratio, cross=share.crossing(ratio))
    wanted = replace(wanted, largest=(*own.largest[:2], largest, own.largest[3]))
    ends = share.low / share.likely, share.high / share.likely
    found = replace(resized(profile, parts, wanted), origin=replace(profile.origin, cross_range=ends))
    if name not in SENDERS or parts < min(SENDERS[name]):
        return found
    counted = SENDERS[name]
    return with_senders(found, float(np.interp(np.log(parts), np.log(list(counted)), list(counted.values()))))


def told(name: str, profile: StoredProfile) -> None:
    """Print the means beside those of the shipped profile."""
    was, now = means_of(shipped_profile(name, profile.parts)), means_of(profile)
    sent = profile.pairs.sum(axis=0)
    sys.stdout.write(
        f"{name} at {profile.parts}: boundary/inner {was.boundary:.3f} -> {now.boundary:.3f}, crossing {was.cross:.3f} "
        f"-> {now.cross:.3f}, largest {was.largest[2]:.2f} -> {now.largest[2]:.2f}, rows sent {sent.mean():,.0f}, most "
        f"{sent.max() / sent.mean():.2f} times\n"
    )


if __name__ == "__main__":
    sys.exit(main())
