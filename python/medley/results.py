"""The results of medley.plan, medley.shape and their like: the fields of the command's ``--json``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ._result import Result as Result, build as build, part


@dataclass(frozen=True)
class PlanRow:
    """Communications that differ in nothing but place."""

    op: str
    group: str
    group_size: int
    bytes: int
    count: int
    wire_bytes: float
    dtype: str
    phase: str
    module: str
    exposed: bool
    why: str


@dataclass(frozen=True)
class Plan(Result):
    """One rank's training step."""

    ROWS = "rows"
    model: dict[str, Any]
    layout: dict[str, Any]
    framework: str
    assumptions: str
    world: int
    rank: int
    rows: list[PlanRow] = field(repr=False, metadata=part(PlanRow))
    totals: dict[str, dict[str, float]]       #: by group: bytes, wire_bytes, count
    total: dict[str, float]
    histogram: list[dict[str, int]] = field(repr=False)
    small: dict[str, float]
    memory: dict[str, int]                    #: bytes
    textbook: dict[str, float]                #: wire bytes by group that the textbook gives
    # On a machine:
    machine: str | None = None
    step_us: float | None = None
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    hardware_tflops_per_gpu: float | None = None
    fits: bool | None = None
    fullest_rank: int | None = None
    fit: str | None = None
    gpu_memory: int | None = None
    breakdown: dict[str, float] | None = None  #: microseconds of the step by cause
    training: dict[str, float] | None = None   #: where tokens are given: tokens, steps, days, gpu_hours


@dataclass(frozen=True)
class SweepPoint:
    """One plan of a sweep; what is not known is None."""

    values: dict[str, str]                    #: of each axis
    refused: str | None = None                #: why there is no plan
    world: int | None = None
    rank: int | None = None
    parameters: int | None = None
    totals: dict[str, dict[str, float]] | None = None
    total: dict[str, float] | None = None
    histogram: list[dict[str, int]] | None = field(default=None, repr=False)
    small: dict[str, float] | None = None
    memory: dict[str, int] | None = None
    machine: str | None = None
    step_us: float | None = None
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    hardware_tflops_per_gpu: float | None = None
    fits: bool | None = None
    fullest_rank: int | None = None
    fit: str | None = None
    gpu_memory: int | None = None
    breakdown: dict[str, float] | None = None
    training: dict[str, float] | None = None


@dataclass(frozen=True)
class PlanSweep(Result):
    """The same plan over a grid."""

    ROWS = "points"
    model: dict[str, Any]
    framework: str
    sweep: list[dict[str, Any]]
    points: list[SweepPoint] = field(repr=False, metadata=part(SweepPoint))
    fastest: int | None                       #: index of the point with the most tokens/s per GPU that fits; None: no machine, or several models


@dataclass(frozen=True)
class FoundLayout:
    """A layout that fits."""

    layout: str                               #: as medley.plan takes it
    sizes: dict[str, Any]                     #: its numbers, micro_batch among them
    memory: dict[str, int]                    #: bytes of the fullest GPU
    machine: str
    step_us: float
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    hardware_tflops_per_gpu: float
    fits: bool                                #: always true
    fullest_rank: int
    fit: str
    gpu_memory: int
    breakdown: dict[str, float]
    training: dict[str, float] | None = None


@dataclass(frozen=True)
class LayoutSearch(Result):
    """The fastest layouts of a number of GPUs, the fastest first; empty where none fits."""

    ROWS = "layouts"
    model: dict[str, Any]
    framework: str
    machine: str
    gpus: int
    global_batch: int
    assumed_batch: bool                       #: the request named no batch: some 4 million tokens
    fixed: str                                #: what all layouts have besides their own text
    varied: dict[str, list[str]]              #: the values tried for each key
    tried: int
    impossible: int
    too_large: int
    layouts: list[FoundLayout] = field(repr=False, metadata=part(FoundLayout))


@dataclass(frozen=True)
class Product:
    """A matrix product of one micro-batch: (m×k)·(k×n), tokens first."""

    name: str
    block: str
    pass_: str                                #: forward, dgrad, wgrad or recompute
    count: int
    m: int
    n: int
    k: int
    batch: int
    layout: str
    predicted_us: float
    tflops: float
    efficiency: float
    lost_to: str
    lost_us: dict[str, float]


@dataclass(frozen=True)
class Advice:
    """A number to change; gain is None for a GPU that was never measured."""

    rule: str
    rule_number: int
    knob: str
    was: int
    now: int
    gain: float | None
    gain_text: str
    parameters_change: float
    heads: int
    head_dim: int
    why: str


@dataclass(frozen=True)
class ShapeReport(Result):
    """One model on one GPU."""

    ROWS = "gemms"
    model: str
    gpu: str
    calibrated: bool
    gpu_model: str
    mode: str
    layout: dict[str, int]
    parameters: int
    gemms: list[Product] = field(repr=False, metadata=part(Product))
    others: list[dict[str, Any]] = field(repr=False)
    layer_us: float
    layer: dict[str, float]
    step_us: float
    micro_batches: int
    stage: dict[str, float]
    bubble_us: float
    optimizer_us: float
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    efficiency: float
    lost_us: dict[str, float]
    memory: dict[str, float]
    rules: list[dict[str, Any]] = field(repr=False)
    advice: list[Advice] = field(repr=False, metadata=part(Advice))


@dataclass(frozen=True)
class ComparedShape:
    """One model on one GPU; refused says why a layout is impossible."""

    model: str
    gpu: str
    calibrated: bool
    parameters: float
    refused: str | None = None
    layer_us: float | None = None
    step_us: float | None = None
    tokens_per_s_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    efficiency: float | None = None
    lost_to: str | None = None
    fits: bool | None = None
    largest_micro_batch: int | None = None
    against_first: float | None = None


@dataclass(frozen=True)
class ShapeComparison(Result):
    """Every model on every GPU."""

    ROWS = "rows"
    rows: list[ComparedShape] = field(metadata=part(ComparedShape))


@dataclass(frozen=True)
class Candidate:
    """A shape near the model; gain is None for a GPU that was never measured."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    ffn: int
    vocab: int
    parameters_change: float
    gain: float | None
    gain_text: str
    tflops: float
    efficiency: float


@dataclass(frozen=True)
class ShapeSearch(Result):
    """The shapes that no other beats in both speed and nearness of parameters. Model quality is not predicted."""

    ROWS = "pareto"
    model: str
    gpu: str
    calibrated: bool
    candidates: int
    products: int
    seconds: float
    bounds: dict[str, float]
    given: Candidate = field(metadata=part(Candidate))
    pareto: list[Candidate] = field(repr=False, metadata=part(Candidate))
    fastest: Candidate = field(metadata=part(Candidate))
    best_per_parameter: Candidate = field(metadata=part(Candidate))
    quality: str


@dataclass(frozen=True)
class GemmTime:
    """The predicted time of a matrix product."""

    m: int
    n: int
    k: int
    batch: int
    layout: str
    type: str
    predicted_us: float
    tflops: float
    efficiency: float
    lost_to: str
    lost_us: dict[str, float]
    kernel: str


@dataclass(frozen=True)
class GemmTimes(Result):
    """Predicted times of the rows of a CSV file."""

    ROWS = "rows"
    gpu: str
    calibrated: bool
    sustained: bool
    model: str                                #: where the GPU's model comes from
    rows: list[GemmTime] = field(repr=False, metadata=part(GemmTime))


@dataclass(frozen=True)
class Finding:
    """A number that wastes time; better is None where the shape is impossible."""

    file: str
    key: str
    value: int
    better: int | None
    waste: float | None
    why: str


@dataclass(frozen=True)
class Lint(Result):
    """True where nothing was found."""

    ROWS = "findings"
    file: str
    gpu: str
    calibrated: bool
    allow: float
    findings: list[Finding] = field(metadata=part(Finding))
    together: float | None                    #: share of the step that all better values save at once

    def __bool__(self) -> bool:
        return not self.findings
