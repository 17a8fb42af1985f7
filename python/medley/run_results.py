"""The results of functions that run or look at a job: medley.trace, reconcile, explain, bench, tune, replay and their like.
Their fields are those of the command's ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from . import results
from .results import Result


@dataclass(frozen=True)
class TraceRow:
    """Operations of one step that differ in nothing but time. Times are None where the trace has none."""

    op: str
    group: str
    group_size: int
    bytes: int | None                         #: None: the source does not say
    count: int
    wire_bytes: float
    dtype: str
    phase: str
    module: str
    exposed: bool | None                      #: None: the source does not say when the program waited
    why: str
    ranks: list[int]
    backend: str
    algorithm: str
    total_us: float | None = None
    median_us: float | None = None
    p99_us: float | None = None
    exposed_us: float | None = None           #: of total_us, the time in which the rank only waited
    overlapped_us: float | None = None


@dataclass(frozen=True)
class Trace(Result):
    """What a recorded run sent: one rank's step, and what went wrong."""

    ROWS = "rows"
    source: str
    format: str
    world: int
    ranks_traced: int
    rank: int
    steps: int
    steps_found_by: str
    steps_unlike: int
    step_us: float
    rows: list[TraceRow] = field(repr=False)
    totals: dict[str, dict[str, float]]
    histogram: list[dict[str, int]] = field(repr=False)
    small: dict[str, float]
    layout: dict[str, Any]                    #: text, complete, evidence: the layout that explains what was sent
    skew: list[dict[str, Any]] = field(repr=False)
    problems: list[dict[str, Any]]            #: operations that did not end well
    route_decisions: list[dict[str, Any]]     #: routes that MEDLEY_ONLINE changed or kept in the running job
    clock_error_us: float
    remarks: list[str]


@dataclass(frozen=True)
class Difference:
    """One row of a step that is not as planned, or something about the run that no row shows (op is then empty)."""

    verdict: str
    op: str
    group: str
    expected: dict[str, Any] | None
    observed: dict[str, Any] | None
    cause: str                                #: empty: no known cause
    rank: int | None = None
    steps: list[int] | None = None
    group_size: int | None = None
    ranks: list[int] | None = None
    fields: list[str] | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Reconciliation(Result):
    """A plan beside a run. True where nothing differs."""

    ROWS = "differences"
    source: str
    format: str
    matched: int
    differences: list[Difference]
    unexplained: int                          #: differences without a known cause
    hypotheses: list[dict[str, Any]]
    notes: list[str]                          #: about operations that no step holds
    ranks: list[dict[str, Any]] = field(repr=False)
    # Where times were compared:
    time: list[dict[str, Any]] | None = field(default=None, repr=False)
    exposed: list[dict[str, Any]] | None = None      #: what the ranks waited for, with its cause
    time_summary: dict[str, Any] | None = None

    def __bool__(self) -> bool:
        return not self.differences


@dataclass(frozen=True)
class Route:
    """A route and how long it took when it was measured."""

    backend: str
    algorithm: str
    median_us: float
    low_us: float                             #: of the 95 % interval of the median
    high_us: float
    samples: int
    slower: float                             #: its time over that of the route taken


@dataclass(frozen=True)
class Explanation(Result):
    """The route that a table gives an operation. reason is "table", or "fallback" where it has no row for it."""

    ROWS = "routes"
    op: str
    bytes: int
    hosts: int
    ranks_per_host: int
    memory: str
    dtype: str
    table: str                                #: its hash
    reason: str
    route: dict[str, str] | None = None
    from_: int | None = None                  #: sizes for which this route holds
    to: int | None = None
    why: list[str] | None = None
    row: dict[str, Any] | None = None
    routes: list[Route] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """Something about a running job that a person should know."""

    kind: str
    alarming: bool
    ranks: list[int]
    group: str
    op: str
    since_s: float
    us: float
    sentence: str


@dataclass(frozen=True)
class Watch(Result):
    """One look at a running job. True where nothing is alarming."""

    ROWS = "verdicts"
    at: float
    world: int
    ranks: int
    operations: int
    verdicts: list[Verdict]
    ended: bool                               #: all processes of the job are gone

    def __bool__(self) -> bool:
        return not any(verdict.alarming for verdict in self.verdicts)


@dataclass(frozen=True)
class ReportFinding:
    """A sentence of the report page."""

    run: str
    section: str
    sentence: str
    headline: bool


@dataclass(frozen=True)
class Report(Result):
    """A report page that was written."""

    ROWS = "findings"
    page: str                                 #: the file
    findings: list[ReportFinding]
    not_measured: list[dict[str, str]]        #: parts of the page without data, and the command that writes it


@dataclass(frozen=True)
class Backend:
    """A backend on this machine; ops says for each operation whether its library has it (native) or Medley fills it in."""

    name: str
    available: bool
    reason: str                               #: why it is not available
    version: str
    memory: list[str]
    ops: dict[str, str]


@dataclass(frozen=True)
class Info(Result):
    """What this build can do on this machine."""

    ROWS = "backends"
    version: str
    cores: int
    operations: list[str]
    dtypes: list[str]
    reductions: list[str]
    backends: list[Backend]


@dataclass(frozen=True)
class BenchRow:
    """One operation of one size on one route. A sample is the slowest rank's time."""

    op: str
    backend: str
    algorithm: str
    memory: str
    dtype: str
    counts: str
    bytes: int
    median_us: float
    mad_us: float
    p99_us: float
    algbw: float
    busbw: float
    iterations: int
    batch: int
    fastest: bool


@dataclass(frozen=True)
class Bench(Result):
    """Latency and bandwidth of operations."""

    ROWS = "rows"
    ranks: int
    hosts: int
    clock: str
    table: str
    rows: list[BenchRow] = field(repr=False)


@dataclass(frozen=True)
class MixRow:
    """A whole step of mixed operations on one backend."""

    mix: str
    backend: str
    memory: str
    median_us: float
    mad_us: float
    p99_us: float
    iterations: int
    speedup: float                            #: over the fastest single library; 0: none was measured
    speedup_over_two: float | None = None     #: over the fastest backend made of two
    speedup_low: float | None = None          #: 95 % interval of speedup, by ratios within rounds
    speedup_high: float | None = None


@dataclass(frozen=True)
class MixBench(Result):
    """Whole steps on each backend."""

    ROWS = "mixes"
    ranks: int
    hosts: int
    table: str
    mixes: list[MixRow]


@dataclass(frozen=True)
class Cell:
    """The routes of one operation and size, fastest first."""

    op: str
    bytes: int
    hosts: int
    ranks_per_host: int
    memory: str
    dtype: str
    confidence: float                         #: that the first route is the fastest
    routes: list[Route] = field(repr=False)

    @property
    def route(self) -> Route:
        """The fastest."""
        return self.routes[0]


@dataclass(frozen=True)
class RouteTable(Result):
    """A measured route table and the file that holds it."""

    ROWS = "cells"
    file: str
    hash: str
    new_cells: int                            #: that the file did not have before
    medley_routes: int                        #: the format's number
    machine: dict[str, Any]
    cells: list[Cell] = field(repr=False)
    step: dict[str, float] | None = None      #: tuned for a step: its median in µs over each library and pair
    auto_us: float | None = None              #: and over the routes chosen for it
    tuned_for: dict[str, Any] | None = field(default=None, repr=False)   #: intervals, confidence and routes

    def _table(self) -> list[dict[str, Any]]:
        return [{**{name: value for name, value in vars(cell).items() if name != "routes"}, "backend": cell.route.backend,
                 "algorithm": cell.route.algorithm, "median_us": cell.route.median_us} for cell in self.cells]


@dataclass(frozen=True)
class Replay(Result):
    """A schedule as it ran. rows and totals are of the busiest rank, and known on rank 0 only."""

    ROWS = "rows"
    schedule: str
    ranks: int
    scale: float
    step_us: dict[str, float]                 #: by backend: the median over all rounds
    predicted_us: dict[str, float]            #: by the route table
    calibrated_us: dict[str, float]           #: by its operations one at a time
    rank: int
    rows: list[TraceRow] = field(repr=False)
    totals: dict[str, dict[str, float]]


@dataclass(frozen=True)
class SoakFailure:
    """A program that went wrong, as short as it could be made."""

    program: int
    kind: str
    text: str
    without: list[int]


@dataclass(frozen=True)
class Soak(Result):
    """Random programs against an oracle. True where all passed."""

    ROWS = "failures"
    ranks: int
    seed: int
    backends: list[str]
    programs: int
    mismatches: int
    hangs: int
    failures: list[SoakFailure]
    invalid: dict[str, Any]                   #: deliberately wrong programs, and how many were diagnosed wrongly

    def __bool__(self) -> bool:
        return not self.failures and not self.invalid["wrong"]


results.PARTS.update({
    (Trace, "rows"): TraceRow, (Reconciliation, "differences"): Difference, (Explanation, "routes"): Route,
    (Watch, "verdicts"): Verdict, (Report, "findings"): ReportFinding, (Info, "backends"): Backend, (Bench, "rows"): BenchRow,
    (MixBench, "mixes"): MixRow, (RouteTable, "cells"): Cell, (Cell, "routes"): Route, (Replay, "rows"): TraceRow,
    (Soak, "failures"): SoakFailure,
})
