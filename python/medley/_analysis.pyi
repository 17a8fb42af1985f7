"""
What the commands compute; use it through the functions of the package medley.
"""

from collections.abc import Callable, Sequence

# What is done, of how much, and a word on it. What it raises ends the work.
Progress = Callable[[float, float, str], object] | None

class PlanRequest:
    """The options of medley.plan."""

    def __init__(self) -> None: ...
    model: str
    family: str
    layout: str
    framework: str
    micro_batch: int
    global_batch: int
    seq: int
    dtype: str
    rank: int | None
    machine: str
    small: int
    tokens: float

class SweepRequest(PlanRequest):
    """The options of medley.plan_sweep."""

    def add_axis(self, text: str) -> None: ...

class LayoutSearchRequest(SweepRequest):
    """The options of medley.plan_search."""

    gpus: int
    most: int

class ShapeRequest:
    """The options of medley.shape."""

    def __init__(self) -> None: ...
    model: str
    family: str
    gpu: str
    tp: int
    pp: int
    dp: int
    zero: int
    sp: bool
    micro_batch: int
    global_batch: int
    seq: int
    mode: str
    attention: str
    framework: str
    compiled: bool
    recompute: str
    dtype: str

class CompareRequest(ShapeRequest):
    """The options of medley.shape_compare."""

    models: Sequence[str]
    gpus: Sequence[str]

class LintRequest(ShapeRequest):
    """The options of medley.lint."""

    allow: float

class SearchRequest(ShapeRequest):
    """The options of medley.shape_search."""

    threads: int
    params: float
    depth: float
    aspect: float
    ffn_ratio: float
    hidden_step: int
    ffn_step: int

class ReconcileRequest(PlanRequest):
    """The options of medley.reconcile."""

    trace: str
    schedule: str
    on_machine: str
    table: str
    scale: float
    only_rank: int
    steps: int
    step: int
    skip: int
    def ignore(self, word: str) -> None: ...

class BenchRequest:
    """The options of medley.bench."""

class TuneRequest:
    """The options of medley.tune."""

class ReplayRequest:
    """The options of medley.replay."""

# Each returns the JSON that the command writes.
def plan(request: PlanRequest, schedule: str) -> str: ...
def plan_sweep(request: SweepRequest, progress: Progress) -> str: ...
def plan_search(request: LayoutSearchRequest, progress: Progress) -> str: ...
def shape(request: ShapeRequest) -> str: ...
def shape_compare(request: CompareRequest) -> str: ...
def shape_gemm(gpu: str, file: str, calibration: str, column_major: bool, sustained: bool) -> str: ...
def shape_search(request: SearchRequest, progress: Progress) -> str: ...
def lint(request: LintRequest) -> str: ...
def trace(path: str, rank: int, steps: int, small: int, csv: str, perfetto: str, chakra: str, schedule: str) -> str: ...
def reconcile(request: ReconcileRequest) -> str: ...
def explain(table: str, op: str, bytes: int, ranks: int, hosts: int, memory: str, dtype: str, backends: Sequence[str]) -> str: ...
def report(folder: str, output: str, against: str) -> str: ...
def watch(path: str, stuck: float, window: float, late_share: float) -> str | None: ...
def info() -> str: ...
def bench(request: BenchRequest, progress: Progress) -> str: ...
def tune(request: TuneRequest, progress: Progress) -> str: ...
def replay(request: ReplayRequest, progress: Progress) -> str: ...

# Each checks its options.
def bench_request(op: str, sizes: str, backends: Sequence[str], algorithms: Sequence[str], counts: str, dtype: str, memory: str,
                  table: str, mix: Sequence[str], seconds: float, batch: int) -> BenchRequest: ...
def tune_request(output: str, schedule: str, op: str, sizes: str, backends: Sequence[str], dtype: Sequence[str], memory: str,
                 seconds: float, ranks: int, replace: bool) -> TuneRequest: ...
def replay_request(schedule: str, backends: Sequence[str], table: str, trace: str, steps: int, calibrate: bool, scale: float,
                   tflops: float, memory_gbs: float, ranks: int) -> ReplayRequest: ...

def parse_size(text: str) -> int: ...
def place() -> tuple[int, int, str] | None: ...
