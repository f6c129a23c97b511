"""Reports: a what-if payload as terminal table, CSV, figures and an offline page; a timeline as a Chrome trace.

Names resolve on first use: a table in a terminal needs no page, and no figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gcnsim.late import late

if TYPE_CHECKING:
    from gcnsim.report.answer.csv import columns_of_rows as columns_of_rows
    from gcnsim.report.answer.csv import write_csv as write_csv
    from gcnsim.report.answer.notebook import render_notebook as render_notebook
    from gcnsim.report.answer.table import render_short as render_short
    from gcnsim.report.answer.table import render_table as render_table
    from gcnsim.report.cache_curve import cache_curve_payload as cache_curve_payload
    from gcnsim.report.cache_curve import render_cache_curve as render_cache_curve
    from gcnsim.report.cache_curve import write_cache_curve_csv as write_cache_curve_csv
    from gcnsim.report.cache_curve import write_cache_curve_html as write_cache_curve_html
    from gcnsim.report.calibration import render_calibration as render_calibration
    from gcnsim.report.figures.breakdown import Bar as Bar
    from gcnsim.report.figures.breakdown import Breakdown as Breakdown
    from gcnsim.report.figures.breakdown import breakdown_data as breakdown_data
    from gcnsim.report.figures.breakdown import breakdown_figure as breakdown_figure
    from gcnsim.report.figures.breakdown import parts_data as parts_data
    from gcnsim.report.figures.breakdown import rows_data as rows_data
    from gcnsim.report.figures.breakdown import sides_data as sides_data
    from gcnsim.report.figures.cache_hits import CacheHits as CacheHits
    from gcnsim.report.figures.cache_hits import PolicyLine as PolicyLine
    from gcnsim.report.figures.cache_hits import cache_hits_data as cache_hits_data
    from gcnsim.report.figures.cache_hits import cache_hits_figure as cache_hits_figure
    from gcnsim.report.figures.convergence import Convergence as Convergence
    from gcnsim.report.figures.convergence import Learning as Learning
    from gcnsim.report.figures.convergence import convergence_data as convergence_data
    from gcnsim.report.figures.convergence import convergence_figure as convergence_figure
    from gcnsim.report.figures.curves import Curve as Curve
    from gcnsim.report.figures.curves import CurveData as CurveData
    from gcnsim.report.figures.curves import Measured as Measured
    from gcnsim.report.figures.curves import Series as Series
    from gcnsim.report.figures.curves import curve_data as curve_data
    from gcnsim.report.figures.curves import curve_figure as curve_figure
    from gcnsim.report.figures.curves import curve_of_rows as curve_of_rows
    from gcnsim.report.figures.difference import Difference as Difference
    from gcnsim.report.figures.difference import difference_data as difference_data
    from gcnsim.report.figures.difference import difference_figure as difference_figure
    from gcnsim.report.figures.errors import Errors as Errors
    from gcnsim.report.figures.errors import errors_data as errors_data
    from gcnsim.report.figures.errors import errors_figure as errors_figure
    from gcnsim.report.figures.front import Front as Front
    from gcnsim.report.figures.front import front_data as front_data
    from gcnsim.report.figures.front import front_figure as front_figure
    from gcnsim.report.figures.links import LinkBars as LinkBars
    from gcnsim.report.figures.links import Pairs as Pairs
    from gcnsim.report.figures.links import links_data as links_data
    from gcnsim.report.figures.links import links_figure as links_figure
    from gcnsim.report.figures.links import pairs_data as pairs_data
    from gcnsim.report.figures.links import pairs_figure as pairs_figure
    from gcnsim.report.figures.memory import MemoryBars as MemoryBars
    from gcnsim.report.figures.memory import memory_data as memory_data
    from gcnsim.report.figures.memory import memory_figure as memory_figure
    from gcnsim.report.figures.parallel import Parallel as Parallel
    from gcnsim.report.figures.parallel import parallel_data as parallel_data
    from gcnsim.report.figures.parallel import parallel_figure as parallel_figure
    from gcnsim.report.figures.recorded import in_one_unit as in_one_unit
    from gcnsim.report.figures.recorded import timeline_of_run as timeline_of_run
    from gcnsim.report.figures.simulated import pairs_of_result as pairs_of_result
    from gcnsim.report.figures.simulated import timeline_of_result as timeline_of_result
    from gcnsim.report.figures.timeline import TimelineData as TimelineData
    from gcnsim.report.figures.timeline import timeline_data as timeline_data
    from gcnsim.report.figures.timeline import timeline_figure as timeline_figure
    from gcnsim.report.figures.tornado import Tornado as Tornado
    from gcnsim.report.figures.tornado import tornado_data as tornado_data
    from gcnsim.report.figures.tornado import tornado_figure as tornado_figure
    from gcnsim.report.figures.tornado import tornado_of_advice as tornado_of_advice
    from gcnsim.report.figures.validation import Validation as Validation
    from gcnsim.report.figures.validation import validation_data as validation_data
    from gcnsim.report.figures.validation import validation_figure as validation_figure
    from gcnsim.report.images import SUFFIXES as SUFFIXES
    from gcnsim.report.images import refuse_without_kaleido as refuse_without_kaleido
    from gcnsim.report.images import write_image as write_image
    from gcnsim.report.page.figures import page_figures as page_figures
    from gcnsim.report.page.html import write_html as write_html
    from gcnsim.report.page.sections import write_advice as write_advice
    from gcnsim.report.page.sections import write_comparison_page as write_comparison_page
    from gcnsim.report.page.sections import write_simulation as write_simulation
    from gcnsim.report.page.sweep import PointOrder as PointOrder
    from gcnsim.report.page.sweep import write_sweep as write_sweep
    from gcnsim.report.recommended import render_advice_notebook as render_advice_notebook
    from gcnsim.report.recommended import render_recommended as render_recommended
    from gcnsim.report.recommended import render_short_advice as render_short_advice
    from gcnsim.report.reproduction import left_out_lines as left_out_lines
    from gcnsim.report.reproduction import render_reproduction as render_reproduction
    from gcnsim.report.reproduction import write_reproduction as write_reproduction
    from gcnsim.report.result import render_result as render_result
    from gcnsim.report.result import render_short_result as render_short_result
    from gcnsim.report.sweep import render_points as render_points
    from gcnsim.report.sweep import row_of_record as row_of_record
    from gcnsim.report.sweep import write_points as write_points
    from gcnsim.report.tables import columns_of_options as columns_of_options
    from gcnsim.report.tables import write_options_csv as write_options_csv
    from gcnsim.report.validation import render_validation as render_validation
    from gcnsim.report.validation import write_validation as write_validation
    from gcnsim.timeline.parquet import write_spans as write_spans
    from gcnsim.timeline.run_perfetto import RunFacts as RunFacts
    from gcnsim.timeline.run_perfetto import write_run_trace as write_run_trace

_LATE: Final = {
    "gcnsim.report.answer.csv": ("columns_of_rows", "write_csv"),
    "gcnsim.report.answer.notebook": ("render_notebook",),
    "gcnsim.report.answer.table": ("render_short", "render_table"),
    "gcnsim.report.cache_curve": (
        "cache_curve_payload",
        "render_cache_curve",
        "write_cache_curve_csv",
        "write_cache_curve_html",
    ),
    "gcnsim.report.calibration": ("render_calibration",),
    "gcnsim.report.figures.breakdown": (
        "Bar",
        "Breakdown",
        "breakdown_data",
        "breakdown_figure",
        "parts_data",
        "rows_data",
        "sides_data",
    ),
    "gcnsim.report.figures.cache_hits": ("CacheHits", "PolicyLine", "cache_hits_data", "cache_hits_figure"),
    "gcnsim.report.figures.convergence": ("Convergence", "Learning", "convergence_data", "convergence_figure"),
    "gcnsim.report.figures.curves": (
        "Curve",
        "CurveData",
        "Measured",
        "Series",
        "curve_data",
        "curve_figure",
        "curve_of_rows",
    ),
    "gcnsim.report.figures.difference": ("Difference", "difference_data", "difference_figure"),
    "gcnsim.report.figures.errors": ("Errors", "errors_data", "errors_figure"),
    "gcnsim.report.figures.front": ("Front", "front_data", "front_figure"),
    "gcnsim.report.figures.links": ("LinkBars", "Pairs", "links_data", "links_figure", "pairs_data", "pairs_figure"),
    "gcnsim.report.figures.memory": ("MemoryBars", "memory_data", "memory_figure"),
    "gcnsim.report.figures.parallel": ("Parallel", "parallel_data", "parallel_figure"),
    "gcnsim.report.figures.recorded": ("in_one_unit", "timeline_of_run"),
    "gcnsim.report.figures.simulated": ("pairs_of_result", "timeline_of_result"),
    "gcnsim.report.figures.timeline": ("TimelineData", "timeline_data", "timeline_figure"),
    "gcnsim.report.figures.tornado": ("Tornado", "tornado_data", "tornado_figure", "tornado_of_advice"),
    "gcnsim.report.figures.validation": ("Validation", "validation_data", "validation_figure"),
    "gcnsim.report.images": ("SUFFIXES", "refuse_without_kaleido", "write_image"),
    "gcnsim.report.page.figures": ("page_figures",),
    "gcnsim.report.page.html": ("write_html",),
    "gcnsim.report.page.sections": ("write_advice", "write_comparison_page", "write_simulation"),
    "gcnsim.report.page.sweep": ("PointOrder", "write_sweep"),
    "gcnsim.report.recommended": ("render_advice_notebook", "render_recommended", "render_short_advice"),
    "gcnsim.report.reproduction": ("left_out_lines", "render_reproduction", "write_reproduction"),
    "gcnsim.report.result": ("render_result", "render_short_result"),
    "gcnsim.report.sweep": ("render_points", "row_of_record", "write_points"),
    "gcnsim.report.tables": ("columns_of_options", "write_options_csv"),
    "gcnsim.report.validation": ("render_validation", "write_validation"),
    "gcnsim.timeline.parquet": ("write_spans",),
    "gcnsim.timeline.run_perfetto": ("RunFacts", "write_run_trace"),
}
"""The modules that are imported on first use, and the names that each has."""

__all__ = [name for names in _LATE.values() for name in names]
__getattr__ = late(__name__, _LATE)
