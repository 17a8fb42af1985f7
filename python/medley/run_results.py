"""The results of functions that run or look at a job, all in one place: those of trace_results and of measure_results."""

from __future__ import annotations

from ._result import Result
from .measure_results import (
    Backend, Bench, BenchRow, Cell, Explanation, Info, MixBench, MixRow, Replay, Route, RouteTable, Soak, SoakFailure,
)
from .trace_results import Difference, Reconciliation, Report, ReportFinding, Trace, TraceRow, Verdict, Watch

__all__ = [
    "Backend", "Bench", "BenchRow", "Cell", "Difference", "Explanation", "Info", "MixBench", "MixRow", "Reconciliation", "Replay",
    "Report", "ReportFinding", "Result", "Route", "RouteTable", "Soak", "SoakFailure", "Trace", "TraceRow", "Verdict", "Watch",
]
