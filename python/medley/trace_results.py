"""The results of functions that look at a recorded or running job: medley.trace, reconcile, watch and report.
Their fields are those of the command's ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._result import Result, part


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
    rows: list[TraceRow] = field(repr=False, metadata=part(TraceRow))
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
    differences: list[Difference] = field(metadata=part(Difference))
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
    verdicts: list[Verdict] = field(metadata=part(Verdict))
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
    findings: list[ReportFinding] = field(metadata=part(ReportFinding))
    not_measured: list[dict[str, str]]        #: parts of the page without data, and the command that writes it
