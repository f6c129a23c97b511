"""Shipped profiles with the means that were counted: `python -m studies.rescaled_profiles [NAME ...] [--write]`.

A profile of a surrogate has the shape of its parts: who borders on whom, how cross edges are spread. Its means are
those of a drawn graph. Here they become the dataset's: boundary over inner nodes as printed, or by the law through what
is printed (`boundary_at`); entries that cross as data/surrogates.yaml says is likely; of Reddit its four parts and who
sends most as counted. Workers keep their order and their share of everything else. Of profiles that have these
means already nothing changes but rounding. Without --write it prints what would change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from gcnsim.graph.generate import surrogate_facts, surrogates
from gcnsim.trace.packaged_profiles import FOLDER, bundled_parts, bundled_profile
from gcnsim.trace.rescale import COUNTS, means_of, rescaled_profile, with_counts, with_senders
from gcnsim.trace.stored_profile import StoredProfile, write_profile
from gcnsim.workload import boundary_at, dataset

LARGEST: Final = {
    "reddit": {2: (1.046, 1.0)},
    "ogbn-products": {
        2: (1.15, 1.0),
        3: (1.1, 1.12),
        4: (1.12, 1.28),
        5: (1.17, 1.43),
        6: (1.23, 1.54),
        8: (1.36, 1.64),
        10: (1.5, 1.66),
        16: (1.8, 1.75),
        32: (2.4, 2.44),
    },
    "yelp": {
        2: (1.03, 1.01),
        3: (1.04, 1.04),
        4: (1.06, 1.07),
        5: (1.08, 1.12),
        6: (1.12, 1.2),
        8: (1.25, 1.43),
        10: (1.41, 1.69),
        16: (1.81, 2.34),
        32: (2.7, 3.67),
    },
    "reddit-train": {
        2: (1.23, 1.0),
        3: (1.47, 1.39),
        4: (1.62, 1.75),
        6: (1.77, 2.37),
        8: (1.83, 2.82),
        10: (1.86, 3.11),
        16: (1.95, 3.63),
    },
}
"""Boundary nodes and crossing entries of the largest part over the mean.

Of Reddit's two parts, which need what the other sends, as in `SENDERS`. Of the others, the drawn graphs' own figures
smoothed over the numbers of parts: local linear regression in logarithms, Gaussian weights of 0.45. Unsmoothed, the
luck of one METIS seed made Yelp's largest part grow by 39 % from 8 to 10 parts."""

COUNTED: Final = {
    ("reddit", 4): {
        "inner_nodes": [56546, 57007, 59991, 59421],
        "boundary_nodes": [108328, 60983, 147898, 87474],
        "inner_entries": [23969548, 19332967, 21520951, 27311405],
        "with_halo": [34047176, 26811439, 36225663, 40478565],
    }
}
"""Parts as counted, in any order: METIS, objective vol, logs of github saurabhbajaj123/GNN_minibatch_vs_fullbatch at
1559508. with_halo: entries among inner and boundary nodes, those that cross in both directions; self loops are in."""

SENDERS: Final = {"reddit": {4: 1.052, 8: 1.296, 16: 1.410, 32: 1.448}}
"""Rows that the part sends that sends most over the mean, from 4 parts on: objective cut, plotting/data_transfer there;
between them straight in the logarithm of the parts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Rescale the named datasets' profiles, all by default; return the exit code."""
    known = [name for name in surrogates() if bundled_parts(name)]
    parser = argparse.ArgumentParser(description="Shipped profiles with the means that were counted.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/profiles")
    options = parser.parse_args(arguments)
    for name in options.names or known:
        profiles = {parts: rescaled(name, parts) for parts in bundled_parts(name)}
        residuals = {
            str(row.partitions): round(float(profiles[row.partitions].boundary_nodes.mean()) / row.boundary - 1.0, 6)
            for row in dataset(name).boundary
            if row.partitions in profiles
        }
        for parts, profile in profiles.items():
            print_means(name, profile)
            if options.write:
                origin = replace(profile.origin, residuals=residuals)
                write_profile(FOLDER / f"{name}-{parts}.profile", replace(profile, origin=origin))
    return 0


def rescaled(name: str, parts: int) -> StoredProfile:
    """The shipped profile with the means of its dataset, as open in its cross edges as those are."""
    facts, profile = dataset(name), bundled_profile(name, parts)
    own, share = means_of(profile), surrogate_facts(name).cross_edges
    inner, boundary, _ = boundary_at(facts, parts) if facts.boundary else (1.0, own.boundary, "")
    ratio = boundary / inner
    largest, crossing = LARGEST.get(name, {}).get(parts, own.largest[2:])
    wanted = replace(own, boundary=ratio, cross=share.crossing(ratio))
    wanted = replace(wanted, largest=(*own.largest[:2], largest, crossing))
    ends = share.low / share.likely, share.high / share.likely
    found = as_counted(rescaled_profile(profile, parts, wanted), name)
    found = replace(found, origin=replace(profile.origin, cross_range=ends))
    if name not in SENDERS or parts < min(SENDERS[name]):
        return found
    counted = SENDERS[name]
    return with_senders(found, float(np.interp(np.log(parts), np.log(list(counted)), list(counted.values()))))


def as_counted(profile: StoredProfile, name: str) -> StoredProfile:
    """The profile with its parts as counted, where they were, the largest boundary where it has its own largest.

    The mean boundary stays that of the dataset, and so does the number of entries.
    """
    if (name, profile.parts) not in COUNTED:
        return profile
    raw = {figure: np.array(values, np.float64) for figure, values in COUNTED[name, profile.parts].items()}
    crossing = (raw["with_halo"] - raw["inner_entries"]) / 2.0
    entries = raw["inner_entries"] + crossing
    boundary = raw["boundary_nodes"] * (profile.boundary_nodes.sum() / raw["boundary_nodes"].sum())
    by = float(profile.entries.sum() / entries.sum())
    place = np.argsort(np.argsort(profile.boundary_nodes, kind="stable"), kind="stable")
    order = np.argsort(boundary, kind="stable")[place]
    figures = (raw["inner_nodes"], entries * by, boundary, crossing * by)
    counts = {figure: np.rint(values[order]).astype(np.int64) for figure, values in zip(COUNTS, figures, strict=True)}
    counts["entries"][-1] += profile.entries.sum() - counts["entries"].sum()
    return with_counts(profile, counts)


def print_means(name: str, profile: StoredProfile) -> None:
    """Print the means beside those of the shipped profile."""
    was, now = means_of(bundled_profile(name, profile.parts)), means_of(profile)
    sent = profile.pairs.sum(axis=0)
    sys.stdout.write(
        f"{name} at {profile.parts}: boundary/inner {was.boundary:.3f} -> {now.boundary:.3f}, crossing {was.cross:.3f} "
        f"-> {now.cross:.3f}, largest {was.largest[2]:.2f} -> {now.largest[2]:.2f}, rows sent {sent.mean():,.0f}, most "
        f"{sent.max() / sent.mean():.2f} times\n"
    )


if __name__ == "__main__":
    sys.exit(main())
