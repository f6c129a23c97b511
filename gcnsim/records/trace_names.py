"""The meaning of names in a profiler trace: built-in and user patterns for kinds of operation.

A pattern is a shell pattern (`*`, `?`, `[...]`) that matches the whole name, in any case; the first match counts. The
user's patterns come first (`gcnsim.trace-names/1`, docs/files.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from re import Pattern
from re import compile as compiled
from typing import Any, Final

from gcnsim.core.errors import FileError, nearest
from gcnsim.core.fields import shown, unknown_schema
from gcnsim.core.yaml_files import read_yaml
from gcnsim.timeline import OpKind

SCHEMA: Final = "gcnsim.trace-names/1"
IGNORE: Final = "ignore"
"""Replaces a kind: such events are ignored."""

Patterns = tuple[tuple[str, OpKind], ...]

RANGES: Final[Patterns] = (
    ("Optimizer.step#*", OpKind.STEP),
    ("Optimizer.zero_grad#*", OpKind.STEP),
    ("enumerate(DataLoader)*", OpKind.SAMPLE),
    ("pyg::*sample*", OpKind.SAMPLE),
    ("torch_sparse::*sample*", OpKind.SAMPLE),
    ("dgl*sampl*", OpKind.SAMPLE),
)
"""Ranges and operators on the CPU that determine the kind of everything inside them, and of kernels launched there."""

ANNOTATIONS: Final[Patterns] = (("*sampl*", OpKind.SAMPLE), ("*dataload*", OpKind.SAMPLE))
"""The same, only for ranges that a program names itself (`torch.profiler.record_function`)."""

MESSAGES: Final[Patterns] = (
    ("gloo:*barrier*", OpKind.WAIT),
    ("mpi:*barrier*", OpKind.WAIT),
    ("gloo:*reduce*", OpKind.ALLREDUCE),
    ("mpi:*reduce*", OpKind.ALLREDUCE),
    ("gloo:*", OpKind.WIRE),
    ("mpi:*", OpKind.WIRE),
)
"""Collectives and messages of CPU backends."""

COLLECTIVES: Final[Patterns] = (("*nccl*reduce*", OpKind.ALLREDUCE), ("*nccl*", OpKind.WIRE))
"""Kernels of NCCL and RCCL, by their name before its arguments."""

SAYING: Final = ("reduce", "gather", "scatter", "broadcast", "send", "recv", "alltoall", "all_to_all", "barrier")
"""The part of a collective kernel's name that identifies it; a `Generic` kernel has none."""

COPIES: Final[Patterns] = (
    ("Memcpy HtoD*", OpKind.H2D),
    ("Memcpy DtoH*", OpKind.D2H),
    ("Memcpy PtoP*", OpKind.WIRE),
    ("*", OpKind.UPDATE),
)
"""Copies and fills by a device."""

COMPUTE: Final[Patterns] = (
    ("*nll_loss*", OpKind.LOSS),
    ("*cross_entropy*", OpKind.LOSS),
    ("*softmax*", OpKind.LOSS),
    ("*spmm*", OpKind.AGGREGATE),
    ("*csrmm*", OpKind.AGGREGATE),
    ("*sparse*", OpKind.AGGREGATE),
    ("*segment*", OpKind.AGGREGATE),
    ("*scatter*", OpKind.AGGREGATE),
    ("*gather*", OpKind.AGGREGATE),
    ("*index*", OpKind.AGGREGATE),
    ("*embedding*", OpKind.AGGREGATE),
    ("*", OpKind.UPDATE),
)
"""Kernels of a device, and operators of a CPU whose name has a namespace (`aten::mm`)."""

NO_WORK: Final = ("autograd::*", "torch::autograd::*", "c10d::*", "_c10d_functional*", "profiler::*")
"""Operators that enclose others, or pass work to other threads."""


@dataclass(frozen=True, slots=True)
class Names:
    """The user's patterns, in order. iteration: of ranges that mark iterations; None: the profiler's steps do."""

    patterns: tuple[tuple[str, OpKind | None], ...] = ()
    iteration: str | None = None

    def own(self, name: str) -> tuple[bool, OpKind | None]:
        """Whether a pattern of the user matches `name`, and its kind; None: to be ignored."""
        for pattern, kind in self.patterns:
            if matches(pattern, name):
                return True, kind
        return False, None

    def marks(self, name: str) -> bool:
        """Whether a user pattern marks a range called `name` as an iteration."""
        return self.iteration is not None and matches(self.iteration, name)


def is_unnamed(kernel: str) -> bool:
    """Whether a kernel is a collective whose name does not identify it."""
    name = kernel.partition("(")[0].lower()
    return first_of(COLLECTIVES, name) is not None and not any(word in name for word in SAYING)


def first_of(patterns: Patterns, name: str) -> OpKind | None:
    """The kind of the first pattern that `name` matches."""
    return next((kind for pattern, kind in patterns if matches(pattern, name)), None)


def matches(pattern: str, name: str) -> bool:
    """Whether the shell pattern matches the whole of `name`, in any case."""
    return _compiled(pattern.lower()).match(name.lower()) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern[str]:
    return compiled(translate(pattern))


def read_names(path: str | Path) -> Names:
    """The patterns in the YAML file at `path`. Raises FileError, naming the file, the key and what is allowed."""
    raw = read_yaml(path)
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise FileError(f"{path}: {unknown_schema(raw if isinstance(raw, dict) else {})}; allowed: {SCHEMA}")
    for key in raw:
        if key not in ("schema", "iteration", "names"):
            raise FileError(f"{path}: {key}: is not known; {nearest(str(key), ('schema', 'iteration', 'names'))}")
    iteration = raw.get("iteration")
    if iteration is not None and not (isinstance(iteration, str) and iteration):
        raise FileError(f"{path}: iteration: {shown(iteration)} is not a pattern; allowed: text such as 'train_step'")
    return Names(tuple(_patterns(path, raw.get("names") or {})), iteration)


def _patterns(path: str | Path, names: Any) -> list[tuple[str, OpKind | None]]:
    kinds: Mapping[str, OpKind | None] = {str(kind): kind for kind in OpKind} | {IGNORE: None}
    if not isinstance(names, dict):
        raise FileError(f"{path}: names: {shown(names)} is not a mapping; allowed: kinds, each with a list of patterns")
    found: list[tuple[str, OpKind | None]] = []
    for kind, texts in names.items():
        if kind not in kinds:
            raise FileError(f"{path}: names.{kind}: is not a kind of operation; {nearest(str(kind), kinds)}")
        patterns = [texts] if isinstance(texts, str) else texts
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) and pattern for pattern in patterns):
            raise FileError(f"{path}: names.{kind}: not a list of patterns; allowed: text such as 'sample*'")
        found += [(pattern, kinds[kind]) for pattern in patterns]
    return found
