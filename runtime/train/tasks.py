"""The command line of `python -m runtime.train`: arguments become options of one run, or of the runs of a plan.

Every option is declared once, with its help. The same workers train the runs of a plan one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import click
from click.core import ParameterSource

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.core.fields import shown
from gcnsim.core.help_groups import GroupedCommand
from gcnsim.core.yaml_files import read_yaml
from gcnsim.workload.knobs import Knob
from runtime.launch.verdict import describe, error_text, say
from runtime.methods import METHODS, method_of, method_type
from runtime.methods.method import Method, read_as_text
from runtime.options import Options, flag
from runtime.train.earlier_run import with_options_of_run
from runtime.train.preflight import DEFAULT, check_outputs, check_worker_count, free_folder


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a plan: its folder and its arguments as typed. name: plan, number and folder in words."""

    name: str
    out: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """A run to train. name: the plan's entry; None for a single run."""

    options: Options
    name: str | None = None


class EntryError(RuntimeError):
    """A plan entry that failed by an internal error; the message names the entry and the error."""


def read_plan(path: str) -> tuple[Entry, ...]:
    """The entries of a plan file: a list of `{out: FOLDER, args: [ARGUMENT, ...]}`, with distinct folders.

    Raises FileError, naming the entry.
    """
    document = read_yaml(path)
    if not isinstance(document, list) or not document:
        raise FileError(f"{path}: not a list of runs; allowed: one or more of {{out: FOLDER, args: [ARGUMENT, ...]}}")
    entries: dict[str, Entry] = {}
    for number, item in enumerate(document, 1):
        entry = _entry(f"{path}: entry {number}", item)
        if entry.out in entries:
            raise FileError(f"{entry.name}: this folder is already that of {entries[entry.out].name}")
        entries[entry.out] = entry
    return tuple(entries.values())


def _entry(place: str, given: Any) -> Entry:
    if not isinstance(given, dict) or set(given) - {"args"} != {"out"}:
        keys = f"has {', '.join(given) or 'nothing'}" if isinstance(given, dict) else "is not a mapping"
        raise FileError(f"{place}: {keys}; allowed: out, args")
    out, words = given["out"], given.get("args", [])
    if not isinstance(out, str) or not out:
        raise FileError(f"{place}: out is {shown(out)}; allowed: a folder's path")
    if not isinstance(words, list) or not all(_word(word) for word in words):
        raise FileError(f"{place} ({out}): args is not a list of strings; allowed: e.g. [--tau, 2]")
    return Entry(f"{place} ({out})", out, tuple(str(word) for word in words))


def _word(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Errors in the block name the entry; None leaves them unchanged."""
    try:
        yield
    except GcnsimError as error:
        if name is None:
            raise
        raise type(error)(f"{name}: {error}") from error
    except Exception as error:
        if name is None:
            raise
        raise EntryError(f"{name}: {describe(error)}") from error


SWITCHES: Final = frozenset({"bias", "preaggregate", "record", "overwrite", "json", "json_log", "quiet"})

HELP: Final[Mapping[str, str]] = {
    "method": f"One of {', '.join(METHODS)}.",
    "dataset": "digits, or the name of a graph in the folder that the environment variable GCNSIM_DATA names.",
    "graph": "Graph file or folder of a published dataset, in place of --dataset.",
    "workers": "Local workers to start; under torchrun, mpirun or srun, their own count applies.",
    "iterations": "Model updates in total, including those before --resume.",
    "seed": "Seed of all random draws but the partition's and the split's.",
    "feature_dim": "Project features to this width with a fixed random matrix.",
    "feature_norm": "none, row (divide by the row's sum) or standard (mean 0, deviation 1 over training nodes).",
    "random_features": "Random features of this width instead of the file's.",
    "random_classes": "Random labels of this many classes instead of the file's.",
    "partition": "Partition to use: from gcnsim graph partition, owners (.npy, or one per line), or a DGL folder.",
    "partition_method": "metis, random or block.",
    "objective": "METIS minimises vol (communication volume) or cut (edges cut).",
    "balance": "METIS balances nodes, edges, or training-nodes (training nodes as well as all nodes).",
    "partition_seed": "Seed of the partitioner.",
    "model": "gcn, graphsage or gat.",
    "layers": "Number of layers (graph convolutions).",
    "hidden": "Width of the hidden layers.",
    "heads": "Attention heads (gat).",
    "dropout": "Share of each layer's input values that is dropped.",
    "norm": "Normalisation after every layer but the last: none or layer (LayerNorm).",
    "bias": "Whether linear layers have a bias.",
    "sage_mean": "graphsage: mean over the neighbours alone (neighbours), or with the node itself (with-self).",
    "dropout_order": "Dropout after rows arrive (exchange-first, PipeGCN), or before sending (dropout-first, BNS-GCN).",
    "preaggregate": "Sum layer 0's neighbours once: layer 0 never communicates.",
    "optimizer": "adam or sgd.",
    "lr": "Learning rate.",
    "weight_decay": "Weight decay.",
    "eval_every": "Iterations between evaluations on the full graph; 0: only at the end.",
    "init_weights": "Read the initial weights (.npz, an array per parameter).",
    "save_init": "Write the initial weights (.npz).",
    "device": "cpu or cuda.",
    "backend": "Transport of tensors: gloo, nccl (so far tested on one GPU only), or auto (gloo; on cuda, through "
    "pinned memory).",
    "dtype": "float32 or float64.",
    "aggregator": "Kernels that sum neighbours: plain (torch), numba (gcnsim's own), dgl, or auto (the fastest here).",
    "overlap": "With tau 0: wait for rows first (none), or sum local rows during the transfer (central).",
    "threads": "CPU threads of each worker.  [default: cores / local workers]",
    "timeout": "Seconds after which a silent worker counts as lost.",
    "out": "Run folder; must not contain a run.  [default: --resume's, else the first free one of run, run-2, ...]",
    "record": "Record every operation and write the run folder. With --no-record, only checkpoints go there.",
    "warmup": "Iterations at the start to exclude from averages.",
    "save_trace": "Write the access trace of the run, for gcnsim.  [default: access.trace in the run folder]",
    "loss_log": "Write iteration and global training loss as CSV.",
    "checkpoint_every": "Iterations between checkpoints; 0: only when a signal stops the run.",
    "resume": "Continue from the last checkpoint of this run folder, with the options of that run.",
    "overwrite": "Replace the run in the run folder.",
    "json": "Print the final figures as one JSON object.",
    "json_log": "One JSON object per iteration on standard error.",
    "quiet": "Show no progress line.",
}


def knobs_of(methods: Iterable[type[Method]]) -> Mapping[str, tuple[Knob, ...]]:
    """The knobs of `methods` by name; methods may have different ranges and defaults for one."""
    found: dict[str, dict[Knob, None]] = {}
    for method in methods:
        for knob in method.knobs():
            found.setdefault(knob.name, {})[knob] = None
    return {name: tuple(knobs) for name, knobs in found.items()}


_KNOBS: Final = knobs_of(METHODS.values())


def with_options(
    command: Callable[..., Any],
    help_of: Mapping[str, str] = HELP,
    knobs_by_name: Mapping[str, tuple[Knob, ...]] = _KNOBS,
    *,
    lists: bool = False,
) -> Callable[..., Any]:
    """`command` with an option for each field of `Options` that has help, and one for each knob.

    lists: knobs are taken as text, several values of each.
    """
    for name, knobs in reversed(list(knobs_by_name.items())):
        names = [flag(name), *(["--p"] if name == "rate" else [])]
        text = "  ".join(_explained(knob) for knob in knobs)
        kind: Any = str if lists or read_as_text(knobs[0]) else {"int": int, "real": float}.get(knobs[0].kind, str)
        command = click.option(*names, name, type=kind, help=text)(command)
    defaults = Options.__dataclass_fields__
    for name in reversed(list(help_of)):
        default = defaults[name].default
        if name in SWITCHES:
            off = f"/--no-{name.replace('_', '-')}" if default else ""
            command = click.option(f"{flag(name)}{off}", name, is_flag=True, default=default, help=help_of[name])(
                command
            )
            continue
        kind = type(default) if default is not None else _TYPES.get(name, str)
        command = click.option(flag(name), name, type=kind, default=default, show_default=True, help=help_of[name])(
            command
        )
    return command


def _explained(knob: Knob) -> str:
    """A knob's help: its meaning, methods, choices and default."""
    having = ", ".join(method for method, known in METHODS.items() if knob in known.knobs())
    share = knob.kind == "size" or (knob.kind == "real" and knob.unit == "%")
    shown = (
        f"{100 * float(str(knob.default)):g}%"
        if share and knob.default != "auto"
        else "none"
        if knob.default is None
        else knob.default
    )
    allowed = f"; allowed: {', '.join(knob.choices)}" if knob.choices else ""
    return f"{knob.help[0].upper()}{knob.help[1:]} ({having}){allowed}.  [default: {shown}]"


_TYPES: Final[Mapping[str, type]] = {
    "feature_dim": int,
    "random_features": int,
    "random_classes": int,
    "threads": int,
}


def options_of(given: Mapping[str, Any]) -> Options:
    """The options of the arguments. Raises ScenarioError for an invalid value or knob."""
    method = method_type(given["method"])
    fields = {name: given[name] for name in HELP} | {"method": method.name}
    question = {name: given[name] for name in _KNOBS if given[name] is not None}
    options = Options(**fields, knobs=method.settled(question))
    method_of(options.method, options.knobs).refuse(options)
    return options


GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Data": (
        *("dataset", "graph", "feature_dim", "feature_norm", "random_features", "random_classes"),
        *("partition", "partition_method", "objective", "balance", "partition_seed"),
    ),
    "Model and training": (
        *("model", "layers", "hidden", "heads", "dropout", "norm", "bias", "sage_mean", "dropout_order"),
        *("preaggregate", "optimizer", "lr", "weight_decay", "iterations", "seed", "eval_every"),
        *("init_weights", "save_init"),
    ),
    "Method": ("method", *_KNOBS),
    "Workers": ("workers", "device", "backend", "dtype", "aggregator", "overlap", "threads", "timeout"),
    "Record and output": (),
}
"""The options by what they are about; all others are listed with the last."""

RARE: Final = frozenset(
    (
        *("feature_dim", "random_features", "random_classes", "objective", "balance", "partition_seed", "bias"),
        *("sage_mean", "dropout_order", "preaggregate", "weight_decay", "init_weights", "save_init", "backend"),
        *("timeout", "warmup", "json_log", "cold_start", "refresh", "cache_policy", "boundary_scale", "stale_test"),
        *("threshold", "warm_iterations", "detection", "skip_backward", "clip", "layer_sizes", "coverage", "queue"),
        "preprocess",
    )
)
"""Options that `--help` leaves out."""


@click.command(
    "runtime.train",
    cls=GroupedCommand,
    groups=GROUPS,
    rare=RARE,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@with_options
@click.option("--plan", metavar="FILE", help="Carry out the runs listed in this file (.yaml), one after the other.")
@click.pass_context
def command(context: click.Context, /, plan: str | None, **given: Any) -> None:
    """Train a GCN, GraphSAGE or GAT on a partitioned graph, with one worker per part.

    On several servers, it opens ports: use it on trusted networks only.

    \b
    Examples:
      python -m runtime.train
      python -m runtime.train --method psc-gcn --tau 2 --epsilon 0.1 --workers 2
      torchrun --nnodes 2 --nproc-per-node 2 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m runtime.train
    """
    typed = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    context.obj = options_of(with_options_of_run(given, typed)), plan


def tasks_of(argv: Sequence[str]) -> tuple[Task, ...] | None:
    """The runs that `argv` requests: one, or those of a plan; None if help was printed.

    Raises GcnsimError or a ClickException for an invalid value, naming the entry of a plan.
    """
    found = _task_options(argv)
    if found is None:
        return None
    options, plan = found
    if plan is None:
        return (Task(options),)
    return tuple(_planned(argv, entry, options.workers) for entry in read_plan(plan))


def refuse(tasks: Sequence[Task]) -> None:
    """Raise GcnsimError for errors that can be detected before any worker starts."""
    for task in tasks:
        with naming(task.name):
            check_outputs(task.options)
            check_worker_count(task.options)


def with_folder(argv: Sequence[str], tasks: Sequence[Task]) -> tuple[list[str], tuple[Task, ...]]:
    """`argv` and `tasks` with another run folder, which is announced, if the default one contains a run.

    For the launcher, because all workers must use the same folder. Raises FileError.
    """
    task = tasks[0]
    folder = free_folder(task.options) if task.name is None else None
    if folder is None:
        return [*argv], tuple(tasks)
    if not task.options.json_log:
        say(f"{DEFAULT} holds a run already: this one goes into {folder}")
    return [*argv, "--out", str(folder)], (replace(task, options=replace(task.options, out=str(folder))),)


def _planned(argv: Sequence[str], entry: Entry, workers: int) -> Task:
    """An entry's run: its arguments follow those of the whole plan and cannot change the number of workers."""
    with naming(entry.name):
        try:
            found = _task_options([*argv, "--plan", "", *entry.arguments, "--out", entry.out])
        except click.ClickException as error:
            raise ScenarioError(error_text(error)) from None
        if found is None or found[1]:
            raise ScenarioError("args: --help and --plan are for the whole command")
        if found[0].workers != workers:
            raise ScenarioError(
                f"--workers: {found[0].workers}, but the plan is trained by {workers}; allowed: {workers}"
            )
        return Task(found[0], entry.name)


def _task_options(argv: Sequence[str]) -> tuple[Options, str | None] | None:
    """The options and the plan, if any; None if help was printed."""
    try:
        with command.make_context("runtime.train", list(argv)) as context:
            command.invoke(context)
            found: tuple[Options, str | None] = context.obj
            return found
    except click.exceptions.Exit:
        return None
