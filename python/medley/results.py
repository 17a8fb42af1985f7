"""The results of medley.plan, medley.shape and their like: the fields of the command's ``--json``."""

from __future__ import annotations

import dataclasses
import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Iterable, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_ROWS_SHOWN = 200   # in a notebook, where a plan of a large model would have thousands


class Result:
    """What all results share. `ROWS` names the field that is shown as a table."""

    ROWS: ClassVar[str]
    _json: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The result as the command writes it with ``--json``."""
        return self._json

    def to_pandas(self) -> Any:
        """The rows as a pandas.DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(self._table())

    def _repr_html_(self) -> str:
        rows = self._table()
        caption = f"<b>{type(self).__name__}</b> {html.escape(self._summary())}"
        if not rows:
            return f"<p>{caption}: no {html.escape(self.ROWS)}</p>"
        columns = list(dict.fromkeys(name for row in rows for name in row))
        body = "".join(_cells("td", [row.get(name, "") for name in columns]) for row in rows[:_ROWS_SHOWN])
        more = "" if len(rows) <= _ROWS_SHOWN else f"<p>{len(rows) - _ROWS_SHOWN} more rows; to_pandas() has all</p>"
        return f'<table><caption style="text-align: left">{caption}</caption>{_cells("th", columns)}{body}</table>{more}'

    def _summary(self) -> str:
        """The fields that are one word or number."""
        values = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))  # type: ignore[arg-type]
        return ", ".join(f"{name} {_text(value)}" for name, value in values if isinstance(value, (str, int, float)) and len(str(value)) <= 60)

    def _table(self) -> list[dict[str, Any]]:
        return [_flat(vars(row)) for row in getattr(self, self.ROWS)]


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Objects inside a row become columns such as memory.total; lists and what is not known are left out."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat.update(_flat(value, prefix if name == "values" else f"{prefix}{name}."))
        elif value is not None and not isinstance(value, list):
            flat[prefix + name] = value
    return flat


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cells(tag: str, values: Iterable[Any]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(_text(value))}</{tag}>" for value in values) + "</tr>"


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
    rows: list[PlanRow] = field(repr=False)
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


@dataclass(frozen=True)
class PlanSweep(Result):
    """The same plan over a grid."""

    ROWS = "points"
    model: dict[str, Any]
    framework: str
    sweep: list[dict[str, Any]]
    points: list[SweepPoint] = field(repr=False)


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
    gemms: list[Product] = field(repr=False)
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
    advice: list[Advice] = field(repr=False)


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
    rows: list[ComparedShape]


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
    given: Candidate
    pareto: list[Candidate] = field(repr=False)
    fastest: Candidate
    best_per_parameter: Candidate
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
    rows: list[GemmTime] = field(repr=False)


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
    findings: list[Finding]

    def __bool__(self) -> bool:
        return not self.findings


#: Fields whose values, or whose list's items, are objects of their own.
PARTS: dict[tuple[type, str], type] = {
    (Plan, "rows"): PlanRow, (PlanSweep, "points"): SweepPoint, (ShapeComparison, "rows"): ComparedShape, (ShapeReport, "gemms"): Product, (GemmTimes, "rows"): GemmTime, (ShapeReport, "advice"): Advice,
    (ShapeSearch, "given"): Candidate, (ShapeSearch, "pareto"): Candidate, (ShapeSearch, "fastest"): Candidate,
    (ShapeSearch, "best_per_parameter"): Candidate, (Lint, "findings"): Finding,
}


def build(result: type[T], values: dict[str, Any]) -> T:
    """The dataclass `result` with the values of a JSON object."""
    names = {each.name.rstrip("_") for each in dataclasses.fields(result)}
    if "values" in names:   # the point of a sweep, whose axes can be any key
        values = {**values, "values": {key: value for key, value in values.items() if key not in names}}
    known = {}
    for each in dataclasses.fields(result):
        key = each.name.rstrip("_")   # pass_ is a keyword without it
        if key not in values:
            continue   # the default, or a TypeError that names the field
        value, part = values[key], PARTS.get((result, each.name))
        if part is not None:
            value = [build(part, item) for item in value] if isinstance(value, list) else build(part, value)
        known[each.name] = value
    made = result(**known)
    if isinstance(made, Result):
        object.__setattr__(made, "_json", values)
    return made
