"""
What medley plan and medley shape compute; use it through the functions of the package medley.
"""

from collections.abc import Sequence

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

class SweepRequest(PlanRequest):
    """The options of medley.plan_sweep."""

    def add_axis(self, text: str) -> None: ...

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

# Each returns the JSON that the command writes.
def plan(request: PlanRequest) -> str: ...
def plan_sweep(request: SweepRequest) -> str: ...
def shape(request: ShapeRequest) -> str: ...
def shape_compare(request: CompareRequest) -> str: ...
def lint(request: LintRequest) -> str: ...
def shape_search(request: SearchRequest) -> str: ...
