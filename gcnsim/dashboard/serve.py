"""The server with its processes and its temporary folder, which start and end with it."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.processes import cores
from gcnsim.dashboard.answers import Answers
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.jobs import Jobs

if TYPE_CHECKING:
    import flask

    from gcnsim.dashboard.guard import Guard

THREADS: Final = 32
"""Most threads wait: for a row, or for the page's next question."""


@contextmanager
def application_of(guard: Guard, files: str | Path, processes: int | None = None) -> Iterator[flask.Flask]:
    """The pages as a WSGI application; files: the folder that contains all files pages may open.

    Raises ScenarioError.
    """
    if not Path(files).is_dir():
        raise ScenarioError(f"--files: {files} is not a folder; allowed: an existing folder")
    answers = Answers(processes or cores())
    try:
        # Imported while the worker processes import their modules.
        from gcnsim.dashboard.app import AppState, application
        from gcnsim.hardware import devices
        from gcnsim.workload import datasets

        with tempfile.TemporaryDirectory(prefix="gcnsim-dashboard-") as folder:
            places = {name: Path(folder, name) for name in ("uploads", "jobs")}
            for place in places.values():
                place.mkdir()
            jobs = Jobs(places["jobs"])
            try:
                behind = AppState(answers, jobs, Files(places["uploads"], Path(files)), datasets(), devices())
                yield application(behind, guard)
            finally:
                jobs.end()
    finally:
        answers.end()


def serve(
    host: str,
    port: int,
    guard: Guard,
    files: str | Path,
    processes: int | None,
    prefix: str,
    ready: Callable[[str], None],
) -> None:
    """Serve until stopped.

    prefix: as in `gcnsim.dashboard.prefix`. ready: called with the address. Raises ScenarioError if the address is not
    available.
    """
    from gcnsim.dashboard.prefix import Prefixed, read_prefix

    prefix = read_prefix(prefix, "--prefix")
    # Do not log queued requests: a slider's answer takes longer than its next move.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    with application_of(guard, files, processes) as pages:
        import waitress

        from gcnsim.dashboard.guard import LARGEST

        try:
            server = waitress.create_server(
                Prefixed(pages, prefix),
                host=host,
                port=port,
                threads=THREADS,
                ident="",
                max_request_body_size=LARGEST,
                clear_untrusted_proxy_headers=True,
                channel_request_lookahead=1,
            )
        except OSError as error:
            raise ScenarioError(
                f"--port: cannot listen at {host}:{port}: {error.strerror}; allowed: a free port"
            ) from None
        # An end request must reach the main thread: waitress drops exceptions raised while it reads a connection.
        running = Thread(target=server.run, name="waitress", daemon=True)
        running.start()
        ready(f"http://{'[' + host + ']' if ':' in host else host}:{server.effective_port}{prefix}/")
        running.join()
