"""What ``medley bench``, ``tune``, ``replay`` and ``soak`` measure, as functions.

They run on several ranks. In a program that a launcher started (``medley run``, torchrun, mpirun, srun) all ranks call them
together and they join those ranks. Elsewhere, in a notebook for example, `n` ranks are started on this host and ended again:

>>> rows = medley.bench(2, op="all_reduce", sizes="1K:4K", backends=["shm"], seconds=0.2).rows
>>> [(row.bytes, row.backend) for row in rows]
[(1024, 'shm'), (4096, 'shm')]

`progress` is called now and then with what is done, of how much, and a word on it. What it raises ends the work, and so does
Ctrl-C; medley.tune saves its table first. All errors are medley.Error.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Callable, Sequence, overload

from ._request import analysis, typed
from ._start import run_command, run_on_ranks

if TYPE_CHECKING:
    from .run_results import Bench, MixBench, Replay, RouteTable, Soak

    Progress = Callable[[float, float, str], object]

__all__ = ["bench", "replay", "soak", "tune"]


# A type checker sees which of the two results a call gives: `mix` decides.
@overload
def bench(n: int | None = None, *, op: str | Sequence[str] = ..., sizes: str = ..., backends: Sequence[str] = ..., algorithms: Sequence[str] = ...,
          counts: str = ..., dtype: str = ..., memory: str = ..., table: str | os.PathLike[str] | None = ..., seconds: float = ...,
          batch: int | None = ..., progress: Progress | None = ...) -> Bench: ...
@overload
def bench(n: int | None = None, *, op: str | Sequence[str] = ..., sizes: str = ..., backends: Sequence[str] = ..., algorithms: Sequence[str] = ...,
          counts: str = ..., dtype: str = ..., memory: str = ..., table: str | os.PathLike[str] | None = ..., mix: str | Sequence[str],
          seconds: float = ..., batch: int | None = ..., progress: Progress | None = ...) -> MixBench: ...
def bench(n: int | None = None, *, op: str | Sequence[str] = "all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier",
          sizes: str = "4:64M", backends: Sequence[str] = (), algorithms: Sequence[str] = (), counts: str = "uniform",
          dtype: str = "f32", memory: str = "host", table: str | os.PathLike[str] | None = None, mix: str | Sequence[str] = (),
          seconds: float = 0, batch: int | None = 1, progress: Progress | None = None) -> Bench | MixBench:
    """Latency and bandwidth of each operation on each backend; with `mix`, of whole steps instead.

    n: ranks to start on this host; none under a launcher. op: operations, or "all". sizes: "FROM:TO" in bytes of the full tensor.
    backends: all that work here unless given; "auto" follows rules and table. algorithms: "all", or names. mix: "moe", "dlrm",
    "dense" or "all". seconds: for all rows together; 0.1 a row unless given. batch: operations per sample; None: enough for 20 µs.
    """
    options = {"op": _words(op), "sizes": sizes, "backends": _list(backends), "algorithms": _list(algorithms), "counts": counts,
               "dtype": dtype, "memory": memory, "table": _file(table), "mix": _list(mix), "seconds": seconds,
               "batch": 0 if batch is None else batch}
    from .run_results import Bench, MixBench
    answer = run_on_ranks("bench", n, options, progress)
    return typed(MixBench, answer) if options["mix"] else typed(Bench, answer)


def tune(n: int | None = None, output: str | os.PathLike[str] | None = None, *, schedule: str | os.PathLike[str] | None = None,
         op: str | Sequence[str] = "all", sizes: str = "4:16M", backends: Sequence[str] = (), dtype: str | Sequence[str] = "f32",
         memory: str = "host", seconds: float = 60, replace: bool = False, progress: Progress | None = None) -> RouteTable:
    """Measures all routes and writes the fastest for each operation and size to a route table; resumes where the file exists.

    output: the table; the one that contexts look for in the user's cache unless given. schedule: tune this whole step
    under load: a file that medley.plan(…, schedule=FILE) or medley.trace(…, schedule=FILE) wrote, or one of the mixes moe, dlrm and
    dense. replace: give up another step that the table was tuned for. Ctrl-C saves what was measured; the same call resumes there.

    >>> import os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "routes.json")
    >>> table = medley.tune(2, file, op="all_reduce", sizes="1K:4K", backends=["shm"], seconds=1)
    >>> medley.explain(file, "all_reduce", "1K", ranks=2).route["backend"], table.cells[0].route.backend
    ('shm', 'shm')
    """
    step = str(schedule) if schedule in ("moe", "dlrm", "dense") else _file(schedule)
    options = {"output": _file(output), "schedule": step, "op": _words(op), "sizes": sizes, "backends": _list(backends),
               "dtype": _list(dtype), "memory": memory, "seconds": seconds, "replace": replace}
    from .run_results import RouteTable
    return typed(RouteTable, run_on_ranks("tune", n, options, progress))


def replay(schedule: str | os.PathLike[str], n: int | None = None, *, backends: Sequence[str] = (),
           table: str | os.PathLike[str] | None = None, trace: str | os.PathLike[str] | None = None, steps: int = 5,
           calibrate: bool = False, scale: float = 1, tflops: float = 100, memory_gbs: float = 1000,
           progress: Progress | None = None) -> Replay:
    """Runs a planned step for real, over each backend in turn: its operations on the runtime, its computation as time.

    schedule: a file that medley.plan(…, schedule=FILE) or medley.trace(…, schedule=FILE) wrote. n: as many ranks as it has. trace:
    keep the recording in this folder, for medley.trace and medley.reconcile. scale: all sizes and times are multiplied by it.
    calibrate: also predict the step from its operations one at a time.
    """
    options = {"schedule": os.fspath(schedule), "backends": _list(backends), "table": _file(table), "trace": _file(trace),
               "steps": steps, "calibrate": calibrate, "scale": scale, "tflops": tflops, "memory_gbs": memory_gbs}
    from .run_results import Replay
    if trace is not None or analysis().place():
        return typed(Replay, run_on_ranks("replay", n, options, progress))
    with tempfile.TemporaryDirectory(prefix="medley-replay-") as folder:   # the ranks started here record in one place
        return typed(Replay, run_on_ranks("replay", n, {**options, "trace": folder}, progress))


def soak(n: int, *, seed: int = 1, programs: int = 100, backends: Sequence[str] = (), memory: str = "host", seconds: float = 0,
         deadline: float = 30, invalid: bool | None = None, progress: Progress | None = None) -> Soak:
    """Random programs that mix backends, against an oracle, on `n` ranks of this host. The result is true where all passed.

    invalid: True for wrong programs only (mistakes, killed and stopped ranks), False for none; one in 50 more unless given.

    >>> bool(medley.soak(2, programs=20, backends=["shm"], invalid=False))
    True
    """
    words = ["soak", "-n", str(n), "--seed", str(seed), "--programs", str(programs), "--memory", memory, "--seconds", str(seconds),
             "--deadline", str(deadline)]
    words += ["--backends", ",".join(backends)] if backends else []
    words += [] if invalid is None else ["--invalid" if invalid else "--valid"]
    from .run_results import Soak
    return typed(Soak, run_command(words, progress))


def _file(path: str | os.PathLike[str] | None) -> str:
    return "" if path is None else os.path.abspath(path)


def _list(words: str | Sequence[str]) -> list[str]:
    return [word for word in words.split(",") if word] if isinstance(words, str) else list(words)


def _words(words: str | Sequence[str]) -> str:
    return words if isinstance(words, str) else ",".join(words)
