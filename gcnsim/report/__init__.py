"""Reports: a what-if payload as terminal table, CSV, figures and an offline page; a timeline as a Chrome trace."""

from gcnsim.record import RunFacts, write_run_trace, write_spans
from gcnsim.report.cache_curve import (
    CacheCurveInfo,
    PolicyLine,
    cache_curve_figure,
    cache_curve_info,
    cache_curve_payload,
    render_cache_curve,
    write_cache_curve_csv,
    write_cache_curve_html,
)
from gcnsim.report.calibration import render_calibration
from gcnsim.report.csv import columns_of_rows, write_csv
from gcnsim.report.drawing import bandwidth_figure, breakdown_figure
from gcnsim.report.figures import BandwidthCurve, BandwidthInfo, Bar, Breakdown, Series, bandwidth_info, breakdown_info
from gcnsim.report.html import write_html
from gcnsim.report.notebook import render_notebook
from gcnsim.report.reproduction import left_out_lines, render_reproduction, write_reproduction
from gcnsim.report.result import render_result, render_short_result
from gcnsim.report.rows import ROW_KEYS, Row, rows_of
from gcnsim.report.table import render_short, render_table
from gcnsim.report.validation import render_validation, write_validation

__all__ = [
    "ROW_KEYS",
    "BandwidthCurve",
    "BandwidthInfo",
    "Bar",
    "Breakdown",
    "CacheCurveInfo",
    "PolicyLine",
    "Row",
    "RunFacts",
    "Series",
    "bandwidth_figure",
    "bandwidth_info",
    "breakdown_figure",
    "breakdown_info",
    "cache_curve_figure",
    "cache_curve_info",
    "cache_curve_payload",
    "columns_of_rows",
    "left_out_lines",
    "render_cache_curve",
    "render_calibration",
    "render_notebook",
    "render_reproduction",
    "render_result",
    "render_short",
    "render_short_result",
    "render_table",
    "render_validation",
    "rows_of",
    "write_cache_curve_csv",
    "write_cache_curve_html",
    "write_csv",
    "write_html",
    "write_reproduction",
    "write_run_trace",
    "write_spans",
    "write_validation",
]
