"""Where the project opens or parses what comes from outside: found in the source, so that no reader is forgotten."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

DOORS: Final = frozenset(
    (
        *("open", "read_text", "read_bytes", "read_yaml", "parse_yaml", "read_json", "parse_json", "read_sections"),
        *("kind_of", "loadtxt", "genfromtxt", "fromstring", "fromfile", "ZipFile", "is_zipfile", "GzipFile"),
        *("ParquetFile", "DictReader", "safe_open", "memmap", "file_text", "file_start", "plain_bytes", "opened"),
        *(
            "read_npy",
            "npy_shape",
            "pidfd",
            "parse_qsl",
            "decompress",
            "raw_decode",
        ),
    )
)
"""Calls that open or parse, by their last name."""

LOADING: Final = ("json.load", "json.loads", "np.load", "yaml.load", "csv.reader", "torch.load", "load", "tomllib.load")
"""Such calls by their whole name: `load` alone means many things."""

LAST: Final = {name.rpartition(".")[2] for name in LOADING}

EXEMPT: Final[Mapping[str, str]] = {
    "gcnsim/evidence/fit.py:_laws": "what was computed a line before",
    "gcnsim/cli/__init__.py:_prepared": "writes to nowhere",
    "gcnsim/cli/__init__.py:_reader_left": "writes to nowhere",
    "gcnsim/cli/catalog.py:_titles": "of the catalogue, which ships with the package",
    "gcnsim/cli/dashboard.py:command.ready": "opens a browser",
    "gcnsim/evidence/like_questions.py:measured_rows": "of the package's own data",
    "gcnsim/dashboard/answers.py:Answers._leave": "of a process that this one started, by a pipe",
    "gcnsim/dashboard/jobs.py:Job._listen": "of a process that this one started, by a pipe",
    "gcnsim/dashboard/api.py:_answer": "ships with the package",
    "gcnsim/dashboard/api.py:attach.answer": "of a process that this one started, in a folder of its own",
    "gcnsim/dashboard/app.py:found": "of a process that this one started, in a folder of its own",
    "gcnsim/dashboard/pages/sweep.py:Tables.records": "by its own method: a sweep, by its usual reader",
    "gcnsim/dashboard/pages/sweep.py:view": "a figure that was drawn in the same line",
    "gcnsim/dashboard/parts.py:themed": "what was written in the same line",
    "gcnsim/dashboard/job_results.py:JobResult.shown": "what was computed in the same line",
    "gcnsim/dashboard/answers.py:Worker.ask": "of a process that this one started, by a pipe",
    "gcnsim/dashboard/work.py:_answer": "of the process that started this one, by a pipe",
    "gcnsim/dashboard/work.py:job": "of the process that started this one, by a pipe",
    "gcnsim/engine/choice.py:_found": "a note of one's own in the cache of the compiled engine",
    "gcnsim/engine/kernel/store.py:key": "the source of this package",
    "gcnsim/engine/kernel/store.py:read": "code that is run as it stands: trusted by its owner alone, not by its form",
    "gcnsim/engine/reference.py:_Engine.run": "opens nothing: an engine's own word",
    "gcnsim/engine/reference.py:_Engine.tell": "opens nothing: an engine's own word",
    "gcnsim/graph/load.py:write_npz": "writes",
    "gcnsim/graph/generate/fitted.py:_raw": "ships with the package",
    "gcnsim/hardware/catalogue.py:_document": "ships with the package",
    "gcnsim/hardware/catalogue.py:_assumed": "ships with the package",
    "gcnsim/hardware/catalogue.py:_prices": "ships with the package",
    "gcnsim/core/atomic.py:atomic_write": "writes",
    "gcnsim/dashboard/files.py:Files._has": "looks for a line in text of any kind",
    "gcnsim/report/page/templates.py:write_page": "ships with the package",
    "gcnsim/core/atomic.py:_remove_left": "locks what it removes",
    "gcnsim/graph/describe.py:_known": "ships with the package",
    "gcnsim/methods/known_loss.py:_measured": "ships with the package",
    "gcnsim/evidence/frozen_score.py:drift": "ships with the package",
    "gcnsim/core/resources.py:_lines": "of the kernel",
    "gcnsim/planning/sweep_run.py:_answered": "of a worker that this process started, or of one's own cluster",
    "gcnsim/planning/sweep_work.py:answer": "of the process that started this one, or of one's own cluster",
    "gcnsim/planning/sweep_work.py:_worker": "what was written a line before",
    "gcnsim/planning/sweep_work.py:_file_hash": "bytes, whatever they are",
    "gcnsim/records/calibration.py:content_hash": "bytes, whatever they are",
    "gcnsim/workload/cuts.py:_law": "ships with the package",
    "gcnsim/workload/datasets.py:_raw": "ships with the package",
    "runtime/accelerator/machine.py:Table.__init__": "memory that the parent made; all bytes are numbers",
    "runtime/data/load.py:_images": "ships with scikit-learn",
    "runtime/emulation/cluster.py:_congestion": "of the kernel",
    "runtime/emulation/cluster.py:_report": "of a process that this one started, in a folder of its own",
    "runtime/exchange/exchange.py:Exchange.__init__": "opens a channel between workers",
    "runtime/launch/verdict.py:read_failures": "of workers that this process started, in a folder of its own",
    "runtime/methods/batches/stores.py:PartStore.__init__": "opens a channel between workers",
    "runtime/exchange/channels.py:Channels.control": "opens a channel between workers",
    "runtime/measuring/part.py:free_bytes": "of the kernel",
    "runtime/methods/worker.py:BlockWorker.__init__": "opens a channel between workers",
    "runtime/methods/worker.py:_grid": "opens a channel between workers",
    "runtime/methods/sancus/worker.py:StaleBlocks.__init__": "opens a channel between workers",
    "runtime/methods/bns_gcn/worker.py:BnsGcnWorker.__init__": "opens a channel between workers",
    "runtime/methods/psc_gcn/worker.py:PscGcnWorker.__init__": "opens a channel between workers",
    "runtime/methods/worker.py:MethodWorker.start": "opens a channel between workers",
    "runtime/measuring/neighbours.py:main": "of the process that started this one",
    "runtime/microbench/process_group.py:measured": "of a process that this one started, by a pipe",
    "runtime/microbench/measurements.py:from_json": "of the process that started this one",
    "runtime/record/folder_lock.py:lock_folder": "a lock",
    "runtime/record/folder_lock.py:writer": "of the kernel",
    "runtime/record/machine.py:_cpu": "of the kernel",
    "runtime/record/run_folder.py:RunFolder.write_record": "what was written a line before",
    "runtime/survey/folder.py:_sha256": "bytes, whatever they are",
    "runtime/microbench/network.py:meet": "of the workers of this run",
    "runtime/train/session.py:Session._bring_best": "bytes, whatever they are",
    "runtime/train/setup.py:prepare": "opens a channel between workers",
    "runtime/train/setup.py:_emulation": "opens a channel between workers",
    "runtime/train/simulated_gpu.py:_sampler": "opens a channel between workers",
    "runtime/train/worker.py:_boot": "of the kernel",
}
"""Functions that open or parse something, but nothing that anybody else hands over, and why."""


def doors() -> Iterator[str]:
    """Every function of the project that opens or parses: `gcnsim/core/yaml_files.py:read_yaml`."""
    found: dict[str, None] = {}
    for path in sorted(item for room in ("gcnsim", "runtime") for item in (ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for function in _opening(ast.parse(path.read_text(encoding="utf-8")), ()):
            found[f"{name}:{function}"] = None
    yield from found


def _opening(node: ast.AST, within: tuple[str, ...]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from _opening(child, (*within, child.name))
            continue
        if isinstance(child, ast.Call) and within and _opens(child):
            yield ".".join(within)
        yield from _opening(child, within)


def _opens(call: ast.Call) -> bool:
    function = call.func
    last = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return last in DOORS or (last in LAST and ast.unparse(function) in LOADING)
