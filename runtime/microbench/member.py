"""One process of the micro-benchmarks: `python -m runtime.microbench.member`, started by `process_group` alone."""

from __future__ import annotations

import os
import sys

from runtime.launch import Place, Watch, run_worker
from runtime.microbench.measurements import Measurement, MicrobenchRequest, from_json
from runtime.microbench.process_group import RESULTS


def main(request: MicrobenchRequest, place: Place) -> int:
    """Take part in all measurements at `place`; member 0 writes each to the parent as it is taken."""

    def tell(measurement: Measurement) -> None:
        os.write(int(os.environ[RESULTS]), (measurement.to_json() + "\n").encode())

    # From here on it ends with its parent, so before torch is imported, which takes a while.
    with Watch(place):
        from runtime.microbench.program import run

        run(request, place, tell)
    return 0


if __name__ == "__main__":
    run_worker(lambda place: main(from_json(sys.argv[1]), place))
