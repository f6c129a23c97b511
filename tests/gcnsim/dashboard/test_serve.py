"""The server begins and ends when it is told to."""

from __future__ import annotations

import http.client
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from tests.dashboards import begun


def test_it_ends_while_it_is_asked(tmp_path: Path) -> None:
    process, address = begun(tmp_path)
    place, ended = urlsplit(address), Event()

    def ask() -> None:
        while not ended.is_set():
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
            try:
                connection.request("GET", "/")
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                return
            finally:
                connection.close()

    askers = [Thread(target=ask) for _ in range(4)]
    for asker in askers:
        asker.start()
    try:
        ended.wait(0.5)
        process.terminate()
        assert process.wait(20) == 143
    finally:
        ended.set()
        process.kill()
        process.communicate()
        for asker in askers:
            asker.join()
