"""A user's program as a type checker sees it: every function gives the object that its page promises. Checked, never run."""

from __future__ import annotations

from typing import assert_type

import medley
from medley.results import Candidate, Finding, LayoutSearch, Lint, Plan, PlanRow, PlanSweep, Product, ShapeComparison, ShapeReport, ShapeSearch
from medley.run_results import (
    Bench, BenchRow, Cell, Difference, Explanation, MixBench, Reconciliation, Replay, Report, Route, RouteTable, Soak, Trace, TraceRow, Watch,
)


def progress(done: float, of: float, now: str) -> None:
    print(done, of, now)


step = medley.plan("llama-2-7b", "dp=8", framework="fsdp2", machine="dgx-h100", schedule="step.json")
assert_type(step, Plan)
assert_type(step.rows[0], PlanRow)
assert_type(step.step_us, float | None)
assert_type(medley.plan_search("llama-2-7b", 8, "dgx-a100", global_batch=8, sweep={"tp": [1, 2]}), LayoutSearch)
assert_type(medley.plan_sweep("llama-2-7b", sweep={"tp": [1, 2]}, progress=progress), PlanSweep)
assert_type(medley.shape("gpt2-xl", "h200-sxm"), ShapeReport)
assert_type(medley.shape("gpt2-xl", "h200-sxm").gemms[0], Product)
assert_type(medley.shape_compare(["gpt2-xl"], ["h200-sxm"]), ShapeComparison)
found = medley.shape_search("gpt2-xl", "h200-sxm", progress=progress)
assert_type(found, ShapeSearch)
assert_type(found.fastest, Candidate)
assert_type(medley.lint("config.json", "h200-sxm"), Lint)
assert_type(medley.lint("config.json", "h200-sxm").findings[0], Finding)

seen = medley.trace("run")
assert_type(seen, Trace)
assert_type(seen.rows[0], TraceRow)
assert_type(medley.reconcile("run", schedule="step.json"), Reconciliation)
assert_type(medley.reconcile("run", schedule="step.json").differences[0], Difference)
assert_type(medley.explain("routes.json", "all_reduce", "64K", ranks=2), Explanation)
assert_type(medley.report(".").findings[0].sentence, str)
assert_type(medley.report("."), Report)
assert_type(medley.watch("run"), Watch | None)

table = medley.tune(2, "routes.json", schedule="moe", progress=progress)
assert_type(table, RouteTable)
assert_type(table.cells[0], Cell)
assert_type(table.cells[0].route, Route)
assert_type(medley.replay("step.json", 2, progress=progress), Replay)
assert_type(medley.bench(2), Bench)
assert_type(medley.bench(2).rows[0], BenchRow)
assert_type(medley.bench(2, mix="moe", progress=progress), MixBench)
assert_type(medley.soak(2), Soak)

work = medley.all_reduce("auto", bytearray(4), async_op=True)
assert_type(work, medley.Work | None)
assert_type(medley.recv("auto", bytearray(4)), medley.Work | int | None)
medley.plan("llama-2-7b", micro_batch="4")  # type: ignore[arg-type]
medley.all_reduce("auto", bytearray(4), asinc_op=True)  # type: ignore[call-arg]
