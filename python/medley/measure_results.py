"""The results of functions that measure on this machine, or tell what was measured: medley.bench, tune, replay, soak, explain and info.
Their fields are those of the command's ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._result import Result, part
from .trace_results import TraceRow


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
    routes: list[Route] = field(default_factory=list, metadata=part(Route))


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
    backends: list[Backend] = field(metadata=part(Backend))


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
    rows: list[BenchRow] = field(repr=False, metadata=part(BenchRow))


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
    mixes: list[MixRow] = field(metadata=part(MixRow))


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
    routes: list[Route] = field(repr=False, metadata=part(Route))

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
    cells: list[Cell] = field(repr=False, metadata=part(Cell))
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
    rows: list[TraceRow] = field(repr=False, metadata=part(TraceRow))
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
    failures: list[SoakFailure] = field(metadata=part(SoakFailure))
    invalid: dict[str, Any]                   #: deliberately wrong programs, and how many were diagnosed wrongly

    def __bool__(self) -> bool:
        return not self.failures and not self.invalid["wrong"]
