"""What ``medley plan`` and ``medley shape`` compute, as functions: their keywords are the command's options.

>>> step = medley.plan("gpt3-175b", "dp=16,tp=8,pp=8,sp=on", framework="megatron", global_batch=1536)
>>> step.world, step.rank, sorted(step.totals)
(1024, ..., ['dp', ...])

Every result has the fields that the command writes with ``--json``; ``to_dict()`` gives them as they are, ``to_pandas()``
the rows as a DataFrame. None of these needs a job or a GPU.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Sequence

from ._request import ask, fill

if TYPE_CHECKING:
    from .results import GemmTimes, LayoutSearch, Lint, Plan, PlanSweep, ShapeComparison, ShapeReport, ShapeSearch

__all__ = ["lint", "plan", "plan_search", "plan_sweep", "shape", "shape_compare", "shape_gemm", "shape_search"]


def plan(model: str, layout: str = "", *, framework: str = "textbook", family: str | None = None, micro_batch: int | None = None,
         global_batch: int | None = None, seq: int | None = None, dtype: str | None = None, rank: int | None = None,
         machine: str | None = None, small: int | None = None, tokens: float | None = None,
         schedule: str | os.PathLike[str] | None = None) -> Plan:
    """What one rank sends in one training step, as the framework issues it; on a machine, also how long the step takes.

    model: a known model, a file (HF config.json, NeoX yml, Megatron arguments) or "h=…,a=…,layers=…"; family: how to read a
    config.json. layout: such as "dp=8,tp=4,zero=1", or a framework's own file. rank: the busiest one unless given.
    machine: a name such as "dgx-a100", or a TOML file. small: messages up to this many bytes count as small. tokens: also how
    long training on so many takes, on the machine.
    schedule: also write every operation in order to this file, for medley.replay and medley.reconcile.

    >>> step = medley.plan("llama-2-7b", "dp=8", framework="fsdp2", machine="dgx-h100")
    >>> step.rows[0].op, step.rows[0].group, step.fits
    ('all_gather', 'dp', True)
    >>> round(sum(step.breakdown.values()) / step.step_us, 6)      # every microsecond has a cause
    1.0
    >>> sorted(medley.plan("llama-2-7b", "dp=8", framework="fsdp2", machine="dgx-h100", tokens=1e12).training)
    ['days', 'gpu_hours', 'steps', 'tokens']
    """
    request = fill("PlanRequest", model=model, layout=layout, framework=framework, family=family, micro_batch=micro_batch,
                   global_batch=global_batch, seq=seq, dtype=dtype, rank=rank, machine=machine, small=small, tokens=tokens)
    from .results import Plan
    return ask(Plan, "plan", request, "" if schedule is None else os.fspath(schedule))


def plan_sweep(model: str, layout: str = "", *, sweep: Mapping[str, str | Iterable[Any]], framework: str = "textbook",
               family: str | None = None, micro_batch: int | None = None, global_batch: int | None = None, seq: int | None = None,
               dtype: str | None = None, machine: str | None = None, small: int | None = None, tokens: float | None = None,
               progress: Callable[[float, float, str], object] | None = None) -> PlanSweep:
    """The same plan over a grid: keys of the layout, of the model's shape, or "model", each with its values or a range as text. With world=64 in
    the layout, every point has 64 ranks. progress: called with the points done, their number and a word.

    >>> grid = medley.plan_sweep("pythia-2.8b", "dp=8", framework="megatron", sweep={"seq": "512:2048", "tp": [1, 2, 3]})
    >>> len(grid.points), grid.points[1].values, grid.points[1].total["count"] > 0
    (9, {'seq': '512', 'tp': '2'}, True)
    >>> grid.points[2].refused
    '...tp 3...'
    """
    request = fill("SweepRequest", model=model, layout=layout, framework=framework, family=family, micro_batch=micro_batch,
                   global_batch=global_batch, seq=seq, dtype=dtype, machine=machine, small=small, tokens=tokens)
    _add_axes(request, sweep)
    from .results import PlanSweep
    return ask(PlanSweep, "plan_sweep", request, progress)


def plan_search(model: str, gpus: int, machine: str, *, global_batch: int | None = None, layout: str = "", framework: str = "textbook",
                sweep: Mapping[str, str | Iterable[Any]] | None = None, most: int = 10, family: str | None = None,
                micro_batch: int | None = None, seq: int | None = None, dtype: str | None = None, tokens: float | None = None,
                progress: Callable[[float, float, str], object] | None = None) -> LayoutSearch:
    """The fastest layouts of a number of GPUs that fit their memory. layout: what all of them have, such as "zero=1"; the rest
    is varied. global_batch: some 4 million tokens unless given. sweep: values to try for a key, in place of the usual ones.
    most: layouts to return.

    >>> found = medley.plan_search("llama-3-8b", 16, "dgx-h100", framework="megatron", global_batch=64)
    >>> best = found.layouts[0]
    >>> step = medley.plan("llama-3-8b", best.layout, framework="megatron", micro_batch=best.sizes["micro_batch"],
    ...                    global_batch=64, machine="dgx-h100")
    >>> step.fits, step.world, step.step_us == best.step_us
    (True, 16, True)
    """
    request = fill("LayoutSearchRequest", model=model, gpus=gpus, machine=machine, global_batch=global_batch, layout=layout,
                   framework=framework, most=most, family=family, micro_batch=micro_batch, seq=seq, dtype=dtype, tokens=tokens)
    _add_axes(request, sweep or {})
    from .results import LayoutSearch
    return ask(LayoutSearch, "plan_search", request, progress)


def _add_axes(request: Any, sweep: Mapping[str, str | Iterable[Any]]) -> None:
    for key, values in sweep.items():
        request.add_axis(f"{key}={values if isinstance(values, str) else ','.join(map(str, values))}")


def shape(model: str, gpu: str, *, family: str | None = None, tp: int = 1, pp: int = 1, dp: int = 1, zero: int = 0,
          sp: bool = False, micro_batch: int = 1, global_batch: int | None = None, seq: int | None = None, mode: str = "train",
          attention: str = "best", framework: str = "textbook", compiled: bool = False, recompute: str = "none",
          dtype: str = "bf16") -> ShapeReport:
    """How fast a model's shape runs on a GPU, what its time is lost to, and which numbers to change.

    >>> report = medley.shape("gpt2-xl", "h200-sxm", micro_batch=4)
    >>> report.advice[0].knob, report.advice[0].was, report.advice[0].gain > 0
    ('vocab', 50257, True)
    """
    request = fill("ShapeRequest", model=model, gpu=gpu, family=family, tp=tp, pp=pp, dp=dp, zero=zero, sp=sp,
                   micro_batch=micro_batch, global_batch=global_batch, seq=seq, mode=mode, attention=attention,
                   framework=framework, compiled=compiled, recompute=recompute, dtype=dtype)
    from .results import ShapeReport
    return ask(ShapeReport, "shape", request)


def shape_compare(models: Sequence[str], gpus: Sequence[str], *, family: str | None = None, tp: int = 1, pp: int = 1, dp: int = 1,
                  zero: int = 0, sp: bool = False, micro_batch: int = 1, global_batch: int | None = None, seq: int | None = None,
                  mode: str = "train", attention: str = "best", framework: str = "textbook", compiled: bool = False,
                  recompute: str = "none", dtype: str = "bf16") -> ShapeComparison:
    """Every model on every GPU, against the first row that is possible.

    >>> rows = medley.shape_compare(["llama-2-7b"], ["a100-80-sxm", "h200-sxm"]).rows
    >>> rows[0].against_first, rows[1].against_first > 1
    (1.0, True)
    """
    request = fill("CompareRequest", models=list(models), gpus=list(gpus), family=family, tp=tp, pp=pp, dp=dp, zero=zero,
                   sp=sp, micro_batch=micro_batch, global_batch=global_batch, seq=seq, mode=mode, attention=attention,
                   framework=framework, compiled=compiled, recompute=recompute, dtype=dtype)
    from .results import ShapeComparison
    return ask(ShapeComparison, "shape_compare", request)


def shape_search(model: str, gpu: str, *, params: float = 0.02, depth: float = 0.2, aspect: float = 0.4, ffn_ratio: float = 0.2,
                 hidden_step: int = 64, ffn_step: int = 16, threads: int = 0, family: str | None = None, tp: int = 1, pp: int = 1,
                 dp: int = 1, zero: int = 0, sp: bool = False, micro_batch: int = 1, global_batch: int | None = None,
                 seq: int | None = None, mode: str = "train", attention: str = "best", framework: str = "textbook",
                 compiled: bool = False, recompute: str = "none", dtype: str = "bf16",
                 progress: Callable[[float, float, str], object] | None = None) -> ShapeSearch:
    """The fastest shapes near a model, against the change of its parameters. Tolerances are shares: 0.02 is 2 %.
    progress: called with the hidden sizes done, their number and a word.

    >>> found = medley.shape_search("gpt2-xl", "h200-sxm", params=0.01, depth=0.05, hidden_step=128)
    >>> found.given.hidden, found.fastest.gain >= 0, len(found.pareto) > 0
    (1600, True, True)
    """
    request = fill("SearchRequest", model=model, gpu=gpu, params=params, depth=depth, aspect=aspect, ffn_ratio=ffn_ratio,
                   hidden_step=hidden_step, ffn_step=ffn_step, threads=threads, family=family, tp=tp, pp=pp, dp=dp, zero=zero,
                   sp=sp, micro_batch=micro_batch, global_batch=global_batch, seq=seq, mode=mode, attention=attention,
                   framework=framework, compiled=compiled, recompute=recompute, dtype=dtype)
    from .results import ShapeSearch
    return ask(ShapeSearch, "shape_search", request, progress)


def lint(config: str, gpu: str, *, allow: float = 0.05, family: str | None = None, tp: int = 1, pp: int = 1, dp: int = 1,
         zero: int = 0, sp: bool = False, micro_batch: int | None = None, global_batch: int | None = None, seq: int | None = None,
         mode: str = "train", attention: str = "best", framework: str = "textbook", compiled: bool = False,
         recompute: str = "none", dtype: str = "bf16") -> Lint:
    """The numbers of a config file (or of a known model) that each waste more than the share `allow` of a step.

    >>> found = medley.lint("gpt2-xl", "h200-sxm", allow=0.02)
    >>> bool(found), "vocab_size" in [finding.key for finding in found.findings]
    (False, True)
    >>> bool(medley.lint("gpt2-xl", "h200-sxm", allow=0.9))        # true: nothing was found
    True
    """
    request = fill("LintRequest", model=config, gpu=gpu, allow=allow, family=family, tp=tp, pp=pp, dp=dp, zero=zero, sp=sp,
                   micro_batch=micro_batch, global_batch=global_batch, seq=seq, mode=mode, attention=attention,
                   framework=framework, compiled=compiled, recompute=recompute, dtype=dtype)
    from .results import Lint
    return ask(Lint, "lint", request)


def shape_gemm(gpu: str, file: str | os.PathLike[str], *, calibration: str | os.PathLike[str] | None = None,
               column_major: bool = False, sustained: bool = False) -> GemmTimes:
    """Predicted time of each matrix product of a CSV file with columns m, n, k and optionally batch, layout and type.

    calibration: a file that ``medley shape bench -o`` wrote. sustained: back to back under the power limit, as in training.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("m,n,k\\n4096,4096,4096\\n4096,4097,4096\\n")
    ...     file.flush()
    ...     even, odd = medley.shape_gemm("h200-sxm", file.name).rows
    >>> even.predicted_us < odd.predicted_us
    True
    """
    from .results import GemmTimes
    return ask(GemmTimes, "shape_gemm", gpu, os.fspath(file), "" if calibration is None else os.fspath(calibration), column_major,
               sustained)
