"""The dashboard's worker processes: a line of JSON in, a line of JSON out; only plain data is exchanged.

`python -m gcnsim.dashboard.work rows` forks processes that answer rows and keep shared inputs. `... job` runs one long
job, reports its progress, writes files to the given folder, and ends.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

from gcnsim.core.errors import GcnsimError
from gcnsim.core.signals import die_with_parent
from gcnsim.scenario.question import given_options
from gcnsim.scenario.recommend import Recommend
from gcnsim.scenario.what_if import WhatIf

Say = Callable[[str], None]
RESULT: Final = "answer.json"
FIGURES: Final = "figures.json"
TEXTS: Final = "texts.json"
RECOMMENDED: Final = "recommended"
"""Among the options of a row: asks for what is recommended, not for a row of each setting."""

API: Final = "api"
"""The kind of job that answers a program."""

ASKED: Final = {"what-if": WhatIf, "recommend": Recommend}
"""What programs may ask."""


def rows(numbers: Sequence[int]) -> None:
    """Answer options of a what-if, one line each, on all of these sockets until they close.

    One process per socket is forked, after all inputs of the first page are read.
    """
    from gcnsim import api
    from gcnsim.dashboard.state import PageQuestion

    warm, first = api.RowCache(), PageQuestion()
    _guarded(lambda: {"rows": [warm.rows(**first.row_options(None, method)) for method in first.named]})
    gc.collect()
    gc.freeze()  # Shared memory stays shared: garbage collection must not write to it.
    origin = os.getpid()
    for number in numbers:
        if os.fork() == 0:
            for index in numbers:
                if index != number:
                    os.close(index)
            try:
                die_with_parent(origin)
                _answer(warm, number)
            finally:
                os._exit(0)
    for index in numbers:
        os.close(index)
    sys.stdin.read()


def _answer(warm: Any, number: int) -> None:
    """Send the number of this process, then answer line after line."""
    with socket.socket(fileno=number) as ours, ours.makefile("rw", encoding="utf-8", newline="\n") as lines:
        lines.write(f"{os.getpid()}\n")
        lines.flush()
        while line := lines.readline():
            lines.write(json.dumps(_guarded(lambda: _rows(warm, json.loads(line)))) + "\n")
            lines.flush()


def _rows(warm: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    if RECOMMENDED in options:
        asked = {name: value for name, value in options.items() if name != RECOMMENDED}
        return {"rows": [asdict(warm.recommended(**asked))]}
    rows = [asdict(row) for row in warm.rows(**options)]
    return {"rows": rows, "read": warm.read(**options) if "graph" in options else ""}


def _guarded(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return ask()
    except GcnsimError as error:
        return {"error": " ".join(str(error).split()), "refused": True}
    except Exception as error:
        sys.stderr.write(f"gcnsim dashboard: internal error: {type(error).__name__}: {error}\n")
        return {"error": "internal error; the server's terminal has its name"}


def job(lines: TextIO, out: TextIO) -> None:
    """Run the requested job."""
    request = json.loads(lines.readline())

    def say(text: str, share: float | None = None) -> None:
        out.write(json.dumps({"progress": text, "share": share}) + "\n")
        out.flush()

    known: dict[str, Callable[[Any, Path, Say], None]] = {"what-if": _what_if, API: _api}
    run = known.get(request["kind"]) or partial(_page, request["kind"])
    result = _guarded(lambda: run(request["options"], Path(request["folder"]), say) or {"done": True})
    out.write(json.dumps(result) + "\n")
    out.flush()


def _put(folder: Path, name: str, document: Any) -> None:
    from gcnsim.core.atomic import atomic_write

    with atomic_write(folder / name, text=True) as file:
        file.write(json.dumps(document, allow_nan=False))


def _what_if(options: Mapping[str, Any], folder: Path, say: Say) -> None:
    from gcnsim import api
    from gcnsim.dashboard.job_results import write_setting
    from gcnsim.report.answer import sentences

    answer = api.what_if(**options, progress=say)
    api.write_json(folder / RESULT, answer.payload)
    answer.to_csv(folder / "answer.csv")
    say("drawing the page")
    answer.to_html(folder / "answer.html", progress=say)
    answer.to_timeline(folder / "timeline.json")
    write_setting(folder, answer.recommended.scenario)
    what_if = answer.told
    steps = [f"{step.move}: {step.iteration}, {step.change}" for step in sentences.steps_of(what_if)]
    lists = {
        "Why": _pairs(sentences.reasons_of(what_if)),
        "Next steps": steps,
        "No effect": _pairs(sentences.no_effect_of(what_if)),
        "Warnings": list(what_if.provenance.warnings),
        "Provenance": _pairs(sentences.sources_of(what_if)),
    }
    context = sentences.label_of(what_if), sentences.title_of(what_if)
    _put(folder, TEXTS, {"heading": sentences.verdict_of(what_if), "context": context, "lists": list(lists.items())})


def _api(options: Mapping[str, Any], folder: Path, say: Say) -> None:
    """The answer to a program, as `--json` prints it."""
    from gcnsim import api

    os.chdir(options["files"])
    given = given_options(ASKED[options["ask"]], options["values"])
    answer = api.what_if(**given, progress=say) if options["ask"] == "what-if" else api.recommend(**given, progress=say)
    api.write_json(folder / RESULT, answer.payload)


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names with their texts, one line each."""
    return [f"{name}: {text}" if name else text for name, text in pairs]


def _page(kind: str, options: Mapping[str, Any], folder: Path, say: Say) -> None:
    """The job of a page with figures and text."""
    from gcnsim.dashboard.job_results import JOBS

    result = JOBS[kind](options, folder, say)
    _put(folder, FIGURES, result.shown)
    _put(folder, TEXTS, result.texts)


def main() -> None:
    """Run the command in the first argument."""
    die_with_parent(int(sys.argv[2]) if len(sys.argv) > 2 else os.getppid())
    if sys.argv[1] == "rows":
        rows([int(argument) for argument in sys.argv[3:]])
    else:
        job(sys.stdin, sys.stdout)


if __name__ == "__main__":
    main()
