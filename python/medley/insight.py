"""What ``medley trace``, ``reconcile``, ``explain``, ``watch``, ``report`` and ``info`` say, as functions: their keywords are the
command's options, and every result has the fields that the command writes with ``--json``. None of these needs a job.

>>> import os, tempfile
>>> os.chdir(tempfile.mkdtemp())
>>> step = medley.plan("pythia-70m", "dp=2", framework="ddp", schedule="step.json")
>>> ran = medley.replay("step.json", 2, backends=["shm"], steps=3, scale=0.01, tflops=0, trace="run")
>>> seen = medley.trace("run")
>>> seen.world, seen.steps, seen.rows[0].backend, seen.problems
(2, 3, 'shm', [])
>>> bool(medley.reconcile("run", schedule="step.json", scale=0.01))     # true: nothing differs
True
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Sequence

from ._request import analysis, ask, fill, typed

if TYPE_CHECKING:
    from .run_results import Explanation, Info, Reconciliation, Report, Trace, Watch

__all__ = ["explain", "info", "reconcile", "report", "trace", "watch"]


def trace(path: str | os.PathLike[str], *, rank: int | None = None, steps: int | None = None, small: int | str = 65536,
          csv: str | os.PathLike[str] | None = None, perfetto: str | os.PathLike[str] | None = None,
          chakra: str | os.PathLike[str] | None = None, schedule: str | os.PathLike[str] | None = None) -> Trace:
    """What a recorded run sent and where its time went.

    path: a folder that MEDLEY_TRACE named, a flight recorder's folder, or another tool's trace (``medley trace --help`` lists
    them). rank: the busiest one unless given. steps: how many the trace has, where they are not found by themselves.
    csv, perfetto, chakra: also write the operations to these files (a folder for chakra). schedule: write a step to this file, for
    medley.replay and medley.tune.
    """
    from .run_results import Trace
    return ask(Trace, "trace", os.fspath(path), -1 if rank is None else rank, steps or 0, _size(small), _file(csv),
               _file(perfetto), _file(chakra), _file(schedule))


def reconcile(trace: str | os.PathLike[str], model: str | None = None, layout: str = "", *, schedule: str | os.PathLike[str] | None = None,
              framework: str = "textbook", family: str | None = None, micro_batch: int | None = None,
              global_batch: int | None = None, seq: int | None = None, dtype: str | None = None, scale: float = 1,
              rank: int | None = None, steps: int | None = None, step: int | None = None, skip: int = 0,
              ignore: Sequence[str] = (), machine: str | None = None, table: str | os.PathLike[str] | None = None) -> Reconciliation:
    """What was planned beside what a run sent; every difference with its cause. The result is true where nothing differs.

    The plan is that of `model`, `layout` and `framework` as in medley.plan, or a `schedule`: a file that
    medley.plan(…, schedule=FILE) or medley.trace(…, schedule=FILE) wrote.
    ignore: fields that are not compared, such as "dtype"; "ranks" for ranks without a trace; "outside" for operations outside
    the steps. machine, table: compare times, too, with those on this machine's links or of these measured routes.
    """
    request = fill("ReconcileRequest", trace=os.fspath(trace), model=model, layout=layout, framework=framework, family=family,
                   micro_batch=micro_batch, global_batch=global_batch, seq=seq, dtype=dtype, schedule=_file(schedule), scale=scale,
                   only_rank=rank, steps=steps, step=step, skip=skip, on_machine=machine, table=_file(table))
    for word in [ignore] if isinstance(ignore, str) else ignore:
        request.ignore(word)
    from .run_results import Reconciliation
    return ask(Reconciliation, "reconcile", request)


def explain(table: str | os.PathLike[str], op: str, bytes: int | str, ranks: int, *, hosts: int = 1, memory: str = "host",
            dtype: str = "f32", backends: Sequence[str] = ()) -> Explanation:
    """The route that a table gives an operation, the runners-up and why.

    bytes: of the whole tensor, as a number or as text such as "64K". backends: those that the job has; all of the table's
    unless given.
    """
    from .run_results import Explanation
    return ask(Explanation, "explain", os.fspath(table), op, _size(bytes), ranks, hosts, memory, dtype, list(backends))


def watch(path: str | os.PathLike[str], *, stuck: float = 1, window: float = 60, late_share: float = 0.5) -> Watch | None:
    """One look at a running job: who is late, who is stuck in what. None while the job's files are being made.

    path: /tmp/medley-UID/JOB, or the folder that MEDLEY_TRACE names. stuck: seconds after which an operation counts as
    stuck. The result is true where nothing is alarming::

        while (now := medley.watch(folder)) and not now.ended:
            if not now:
                print(*(verdict.sentence for verdict in now.verdicts), sep="\\n")
            time.sleep(1)
    """
    from .run_results import Watch
    text = analysis().watch(os.fspath(path), stuck, window, late_share)
    return None if text is None else typed(Watch, json.loads(text))


def report(folder: str | os.PathLike[str], output: str | os.PathLike[str] = "report.html", *,
           against: str | os.PathLike[str] | None = None) -> Report:
    """Writes one HTML page from what the commands and functions wrote into a folder. against: a second folder to compare with.

    The data of a function gets there with ``json.dump(result.to_dict(), file)``, or as the command's ``--json``.

    >>> import json, os, tempfile
    >>> os.chdir(tempfile.mkdtemp())
    >>> with open("plan.json", "w") as file:
    ...     json.dump(medley.plan("llama-2-7b", "dp=8", framework="fsdp2", machine="dgx-h100").to_dict(), file)
    >>> page = medley.report(".", "report.html")
    >>> os.path.getsize(page.page) > 100_000, len(page.findings) > 0
    (True, True)
    """
    from .run_results import Report
    data: dict[str, Any] = json.loads(analysis().report(os.fspath(folder), os.fspath(output), _file(against)))
    runs: list[dict[str, Any]] = data["runs"]
    values = {"page": os.fspath(output),
              "findings": [{"run": run["name"], **finding} for run in runs for finding in run["findings"]],
              "not_measured": runs[0]["not_measured"]}
    made = typed(Report, values)
    object.__setattr__(made, "_json", data)   # what `medley report --json` writes
    return made


def info() -> Info:
    """What this build can do on this machine: backends, and why one is not available.

    >>> medley.info().backends[0].name, medley.info().backends[0].ops["all_reduce"]
    ('shm', 'native')
    """
    from .run_results import Info
    return ask(Info, "info")


def _file(path: str | os.PathLike[str] | None) -> str:
    return "" if path is None else os.fspath(path)


def _size(value: int | str) -> int:
    return int(analysis().parse_size(value)) if isinstance(value, str) else value
