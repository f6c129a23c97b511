"""Reports: a what-if payload as terminal table, CSV, figures and an offline page; a timeline as a Chrome trace.

Names resolve on first use: a table in a terminal needs no page, and no figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcnsim.late import late

if TYPE_CHECKING:
    from gcnsim.report.answer.csv import columns_of_rows, write_csv
    from gcnsim.report.answer.notebook import render_notebook
    from gcnsim.report.answer.table import render_short, render_table
    from gcnsim.report.cache_curve import (
        cache_curve_payload,
        render_cache_curve,
        write_cache_curve_csv,
        write_cache_curve_html,
    )
    from gcnsim.report.calibration import render_calibration
    from gcnsim.report.figures.breakdown import (
        Bar,
        Breakdown,
        breakdown_data,
        breakdown_figure,
        parts_data,
        rows_data,
        sides_data,
    )
    from gcnsim.report.figures.cache_hits import (
        CacheHits,
        PolicyLine,
        cache_hits_data,
        cache_hits_figure,
    )
    from gcnsim.report.figures.convergence import (
        Convergence,
        Learning,
        convergence_data,
        convergence_figure,
    )
    from gcnsim.report.figures.curves import (
        Curve,
        CurveData,
        Measured,
        Series,
        curve_data,
        curve_figure,
        curve_of_rows,
    )
    from gcnsim.report.figures.difference import (
        Difference,
        difference_data,
        difference_figure,
    )
    from gcnsim.report.figures.errors import (
        Errors,
        errors_data,
        errors_figure,
    )
    from gcnsim.report.figures.front import (
        Front,
        front_data,
        front_figure,
    )
    from gcnsim.report.figures.links import (
        LinkBars,
        Pairs,
        links_data,
        links_figure,
        pairs_data,
        pairs_figure,
    )
    from gcnsim.report.figures.memory import (
        MemoryBars,
        memory_data,
        memory_figure,
    )
    from gcnsim.report.figures.parallel import (
        Parallel,
        parallel_data,
        parallel_figure,
    )
    from gcnsim.report.figures.recorded import (
        in_one_unit,
        timeline_of_run,
    )
    from gcnsim.report.figures.simulated import (
        pairs_of_result,
        timeline_of_result,
    )
    from gcnsim.report.figures.timeline import (
        TimelineData,
        timeline_data,
        timeline_figure,
    )
    from gcnsim.report.figures.tornado import (
        Tornado,
        tornado_data,
        tornado_figure,
        tornado_of_advice,
    )
    from gcnsim.report.figures.validation import (
        Validation,
        validation_data,
        validation_figure,
    )
    from gcnsim.report.images import SUFFIXES, refuse_without_kaleido, write_image
    from gcnsim.report.page.figures import page_figures
    from gcnsim.report.page.html import write_html
    from gcnsim.report.page.sections import write_advice, write_comparison_page, write_simulation
    from gcnsim.report.page.sweep import PointOrder, write_sweep
    from gcnsim.report.recommended import render_advice_notebook, render_recommended, render_short_advice
    from gcnsim.report.reproduction import left_out_lines, render_reproduction, write_reproduction
    from gcnsim.report.result import render_result, render_short_result
    from gcnsim.report.sweep import render_points, row_of_record, write_points
    from gcnsim.report.tables import columns_of_options, write_options_csv
    from gcnsim.report.validation import render_validation, write_validation
    from gcnsim.timeline.parquet import write_spans
    from gcnsim.timeline.run_perfetto import RunFacts, write_run_trace

__all__ = [
    "SUFFIXES",
    "Bar",
    "Breakdown",
    "CacheHits",
    "Convergence",
    "Curve",
    "CurveData",
    "Difference",
    "Errors",
    "Front",
    "Learning",
    "LinkBars",
    "Measured",
    "MemoryBars",
    "Pairs",
    "Parallel",
    "PointOrder",
    "PolicyLine",
    "RunFacts",
    "Series",
    "TimelineData",
    "Tornado",
    "Validation",
    "breakdown_data",
    "breakdown_figure",
    "cache_curve_payload",
    "cache_hits_data",
    "cache_hits_figure",
    "columns_of_options",
    "columns_of_rows",
    "convergence_data",
    "convergence_figure",
    "curve_data",
    "curve_figure",
    "curve_of_rows",
    "difference_data",
    "difference_figure",
    "errors_data",
    "errors_figure",
    "front_data",
    "front_figure",
    "in_one_unit",
    "left_out_lines",
    "links_data",
    "links_figure",
    "memory_data",
    "memory_figure",
    "page_figures",
    "pairs_data",
    "pairs_figure",
    "pairs_of_result",
    "parallel_data",
    "parallel_figure",
    "parts_data",
    "refuse_without_kaleido",
    "render_advice_notebook",
    "render_cache_curve",
    "render_calibration",
    "render_notebook",
    "render_points",
    "render_recommended",
    "render_reproduction",
    "render_result",
    "render_short",
    "render_short_advice",
    "render_short_result",
    "render_table",
    "render_validation",
    "row_of_record",
    "rows_data",
    "sides_data",
    "timeline_data",
    "timeline_figure",
    "timeline_of_result",
    "timeline_of_run",
    "tornado_data",
    "tornado_figure",
    "tornado_of_advice",
    "validation_data",
    "validation_figure",
    "write_advice",
    "write_cache_curve_csv",
    "write_cache_curve_html",
    "write_comparison_page",
    "write_csv",
    "write_html",
    "write_image",
    "write_options_csv",
    "write_points",
    "write_reproduction",
    "write_run_trace",
    "write_simulation",
    "write_spans",
    "write_sweep",
    "write_validation",
]

_LATE: Final = {
    "gcnsim.timeline.parquet": ("write_spans",),
    "gcnsim.timeline.run_perfetto": (
        "RunFacts",
        "write_run_trace",
    ),
    "gcnsim.report.cache_curve": (
        "cache_curve_payload",
        "render_cache_curve",
        "write_cache_curve_csv",
        "write_cache_curve_html",
    ),
    "gcnsim.report.calibration": ("render_calibration",),
    "gcnsim.report.answer.csv": (
        "columns_of_rows",
        "write_csv",
    ),
    "gcnsim.report.figures.breakdown": (
        "Bar",
        "Breakdown",
        "breakdown_data",
        "breakdown_figure",
        "parts_data",
        "rows_data",
        "sides_data",
    ),
    "gcnsim.report.figures.curves": (
        "Curve",
        "CurveData",
        "Measured",
        "Series",
        "curve_data",
        "curve_figure",
        "curve_of_rows",
    ),
    "gcnsim.report.figures.cache_hits": (
        "CacheHits",
        "PolicyLine",
        "cache_hits_data",
        "cache_hits_figure",
    ),
    "gcnsim.report.figures.convergence": (
        "Convergence",
        "Learning",
        "convergence_data",
        "convergence_figure",
    ),
    "gcnsim.report.figures.difference": (
        "Difference",
        "difference_data",
        "difference_figure",
    ),
    "gcnsim.report.figures.errors": (
        "Errors",
        "errors_data",
        "errors_figure",
    ),
    "gcnsim.report.figures.front": (
        "Front",
        "front_data",
        "front_figure",
    ),
    "gcnsim.report.figures.links": (
        "LinkBars",
        "Pairs",
        "links_data",
        "links_figure",
        "pairs_data",
        "pairs_figure",
    ),
    "gcnsim.report.figures.memory": (
        "MemoryBars",
        "memory_data",
        "memory_figure",
    ),
    "gcnsim.report.figures.parallel": (
        "Parallel",
        "parallel_data",
        "parallel_figure",
    ),
    "gcnsim.report.figures.recorded": (
        "in_one_unit",
        "timeline_of_run",
    ),
    "gcnsim.report.figures.simulated": (
        "pairs_of_result",
        "timeline_of_result",
    ),
    "gcnsim.report.figures.timeline": (
        "TimelineData",
        "timeline_data",
        "timeline_figure",
    ),
    "gcnsim.report.figures.tornado": (
        "Tornado",
        "tornado_data",
        "tornado_figure",
        "tornado_of_advice",
    ),
    "gcnsim.report.figures.validation": (
        "Validation",
        "validation_data",
        "validation_figure",
    ),
    "gcnsim.report.images": ("SUFFIXES", "refuse_without_kaleido", "write_image"),
    "gcnsim.report.page.figures": ("page_figures",),
    "gcnsim.report.page.sections": (
        "write_advice",
        "write_comparison_page",
        "write_simulation",
    ),
    "gcnsim.report.page.sweep": ("PointOrder", "write_sweep"),
    "gcnsim.report.page.html": ("write_html",),
    "gcnsim.report.answer.notebook": ("render_notebook",),
    "gcnsim.report.recommended": ("render_advice_notebook", "render_recommended", "render_short_advice"),
    "gcnsim.report.tables": ("columns_of_options", "write_options_csv"),
    "gcnsim.report.reproduction": (
        "left_out_lines",
        "render_reproduction",
        "write_reproduction",
    ),
    "gcnsim.report.result": (
        "render_result",
        "render_short_result",
    ),
    "gcnsim.report.answer.table": (
        "render_short",
        "render_table",
    ),
    "gcnsim.report.sweep": (
        "render_points",
        "row_of_record",
        "write_points",
    ),
    "gcnsim.report.validation": (
        "render_validation",
        "write_validation",
    ),
}
"""The modules that are imported on first use, and the names that each has."""

__getattr__ = late(__name__, _LATE)
