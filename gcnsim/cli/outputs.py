"""Output of commands: checks of output paths before the work, printed tables, files, and the progress of long work.

Neither a wrong path nor a full disk may lose a long answer, so files are written after printing. Tables have a label
and a value per line, or columns under headings. Progress is shown on stderr after two seconds, and only on a terminal.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from gcnsim.core.atomic import probe, writable
from gcnsim.core.errors import FileError
from gcnsim.core.terminal import LiveLine, aligned
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware import is_file


def print_columns(rows: Sequence[tuple[str, str]]) -> None:
    """Print one label and value per line, with the values aligned."""
    click.echo("\n".join(aligned(rows, left=2)))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> None:
    """Print rows under headings: the first `left` columns aligned to the left, the others to the right."""
    click.echo("\n".join(aligned(rows, headings, left=left)))


def show_and_write(text: str, *writes: Callable[[], object], notes: Iterable[str] = ()) -> None:
    """Print `text` and its notes (on stderr), then do all `writes`; a failed write costs neither the answer nor another
    file.

    Raises FileError naming each failed write, and standard output if it failed.
    """
    failed: list[str] = []
    gone: OSError | None = None
    try:
        click.echo(text, nl=not text.endswith("\n"))
        sys.stdout.flush()
    except OSError as error:
        if error.errno == errno.EPIPE:
            gone = error
        else:
            failed.append(f"standard output: cannot be written: {error.strerror}")
    for note in notes:
        click.echo(f"note: {note}", err=True)
    for write in writes:
        try:
            write()
        except FileError as error:
            failed.append(str(error))
    if failed:
        raise FileError("; ".join(failed))
    if gone is not None:
        raise gone


MACHINE_FIELDS: Final = ("cluster.device", "cluster.devices", "cluster.host")
"""Fields of a scenario that name devices and hosts; each may be a file."""


def machine_files(*names: object) -> list[str]:
    """Return the device and host files among names, lists of names, and names separated by commas."""
    texts = [text for name in names for text in (name if isinstance(name, list | tuple) else [name])]
    words = [word.strip() for text in texts if isinstance(text, str) for word in text.split(",")]
    return [word for word in words if is_file(word)]


def check_folder(
    option: str,
    path: str | None,
    *files: tuple[str, str | None],
    read: Iterable[str | None] = (),
    inside: Iterable[str] = (),
) -> None:
    """Refuse a folder that cannot be used or created. files: options, with paths of files to be written next to it.

    Such a file may be inside the folder before it exists. read: as for `check_outputs`. inside: names of the files to
    be written into the folder. Raises FileError.
    """
    read = list(read)
    beside = dict(files)
    if path is None:
        check_outputs(*read, **beside)
        return
    folder = Path(os.path.realpath(path))
    if not path or folder.exists() or folder.is_symlink():
        if not folder.is_dir():
            raise FileError(f"{path or 'an empty path'}: is not a folder; allowed: a folder, new or existing")
        probe(folder / "x")
        for name in inside:
            writable(folder / name)
            refuse_read(os.path.join(path, name), read)
            _refuse_existing(os.path.join(path, name))
    else:
        writable(folder)
    for name, file in files:
        if file is not None and Path(os.path.realpath(file)) == folder:
            raise FileError(f"{file}: given to both --{option} and --{name}; allowed: different paths")
    later = {name for name, file in files if file and not folder.exists() and _parent(file) == folder}
    check_outputs(*read, **{name: file for name, file in files if name not in later})


def _parent(file: str) -> Path:
    return Path(os.path.realpath(file)).parent


OVERWRITE: Final = "gcnsim.overwrite"
"""In a command's context: whether files may be replaced."""

overwrite_option: Final = click.option(
    "--overwrite",
    is_flag=True,
    expose_value=False,
    callback=lambda context, _, given: context.meta.update({OVERWRITE: given}),
    help="Replace files that exist.",
)


def check_outputs(*read: str | None, **paths: str | None) -> None:
    """Refuse paths that cannot be written, files that exist (unless `overwrite_option` is given), two options that name
    one file, and files that the command reads.

    read: files and folders that the command reads, None for an option not given; files inside such a folder are not
    replaced either. paths: by option name, None for an option not given. Raises FileError.
    """
    taken: dict[str, str] = {}
    for name, path in paths.items():
        option = name.replace("_", "-")
        if path is None:
            continue
        if writable(path):
            probe(path)
            place = os.path.realpath(path)
            if place in taken:
                raise FileError(f"{path}: given to both --{taken[place]} and --{option}; allowed: different files")
            taken[place] = option
            refuse_read(path, read)
    for path in paths.values():
        if path is not None:
            _refuse_existing(path)


def _refuse_existing(path: str) -> None:
    """Raises FileError for a file with content that may not be replaced."""
    context = click.get_current_context(silent=True)
    allowed = context is not None and context.meta.get(OVERWRITE)
    if os.path.isfile(path) and os.path.getsize(path) and not allowed:
        raise FileError(f"{path}: exists; allowed: a new file, or --overwrite to replace it")


def refuse_read(path: str | Path, read: Iterable[str | None]) -> None:
    """Raises FileError if writing `path` would replace one of the files `read`, or a file in one of those folders."""
    if not os.path.exists(path):
        return
    for text in read:
        if not text or not os.path.exists(text):
            continue
        if os.path.samefile(path, text):
            raise FileError(f"{path}: is read by this command and would be replaced; allowed: another file")
        if os.path.isdir(text) and Path(os.path.realpath(text)) in Path(os.path.realpath(path)).parents:
            raise FileError(
                f"{path}: lies in {text}, which this command reads, and would be replaced; allowed: a new file"
            )


def scenario_files(path: str, overrides: Iterable[str] = ()) -> list[str]:
    """Return the scenario file at `path` and the files that it names. Raises FileError as `read_yaml` does."""
    from gcnsim.scenario.load import FILE_FIELDS

    raw = read_yaml(path)
    files = [path, *overridden(overrides)]
    for section, _, key in (name.partition(".") for name in FILE_FIELDS):
        fields = raw.get(section) if isinstance(raw, dict) else None
        value = fields.get(key) if isinstance(fields, dict) else None
        if isinstance(value, str):
            files.append(value)
    cluster = raw.get("cluster") if isinstance(raw, dict) else None
    if isinstance(cluster, dict):
        files += machine_files(*(cluster.get(name.partition(".")[2]) for name in MACHINE_FIELDS))
    return files


def overridden(overrides: Iterable[str]) -> list[str]:
    """Return the files that `PATH=VALUE` settings name, without quotes."""
    from gcnsim.scenario.load import FILE_FIELDS

    files = []
    for text in overrides:
        path, _, value = text.partition("=")
        plain = value.strip().strip("'\"")
        if path.strip() in FILE_FIELDS:
            files.append(plain)
        elif path.strip() in MACHINE_FIELDS:
            files += machine_files(plain)
    return files


PATIENCE_S = 2.0
"""Seconds; shorter work shows no progress."""


class ProgressLine:
    """Shows one line, replaced by the next, with a bar if a share in [0, 1] is done."""

    def __init__(self) -> None:
        self._line = LiveLine(sys.stderr)
        self._said: tuple[str, float | None] | None = None
        self._shown = False
        self._lock = threading.Lock()
        self._timer = threading.Timer(PATIENCE_S, self._show)
        self._timer.daemon = True
        if self._line.watched:
            self._timer.start()

    def __call__(self, text: str, share: float | None = None) -> None:
        with self._lock:
            self._said = (f"{text} ...", share)
            if self._shown:
                self._line.show(*self._said)

    def _show(self) -> None:
        with self._lock:
            self._shown = True
            if self._said is not None:
                self._line.show(*self._said)

    def end(self) -> None:
        """Erase the line."""
        self._timer.cancel()
        with self._lock:
            self._shown, self._said = False, None
            self._line.clear()


@contextmanager
def progress() -> Iterator[ProgressLine]:
    """Return a function that shows progress; it is silent unless the work is long and stderr is a terminal."""
    display = ProgressLine()
    try:
        yield display
    finally:
        display.end()


def notice(text: str) -> None:
    """Print a note on stderr before the answer is ready."""
    click.echo(f"note: {text}", err=True)


def bar(what: str, total: int, say: Callable[[str, float], None]) -> Callable[[int], None]:
    """Return a function that adds newly finished work, out of `total`, and shows the sum, one per cent at a time."""
    done, shown = 0, -1

    def add(more: int) -> None:
        nonlocal done, shown
        done += more
        percent = 100 * done // total if total else 100
        if percent != shown:
            shown = percent
            say(what, percent / 100)

    add(0)
    return add
