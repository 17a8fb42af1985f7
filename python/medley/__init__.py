"""Medley moves arrays between the ranks of a job over whichever communication library is fastest for each operation.

Start the program with ``medley run -n 4 -- python program.py``, torchrun or mpirun; alone, it is a job of one rank:

>>> import numpy as np, medley
>>> medley.init()
>>> gradients = np.ones(4, dtype=np.float32)
>>> medley.all_reduce("auto", gradients)          # "auto" or a backend's name comes first, as in MCR-DL
>>> gradients * medley.get_size()
array([1., 1., 1., 1.], dtype=float32)
>>> work = medley.all_reduce("shm", gradients, "max", async_op=True)
>>> work.wait()
True
>>> medley.finalize()

Arrays are anything that supports DLPack or the buffer protocol (NumPy, PyTorch, CuPy, memoryview, array.array). They are
used in place, never copied. Non-contiguous arrays, and read-only arrays as outputs, are rejected.
"""

from ._core import Comm, ErrorFeedback, Work, __version__, scope
from .analysis import lint, plan, plan_search, plan_sweep, shape, shape_compare, shape_gemm, shape_search
from .collectives import (
    all_gather, all_gatherv, all_reduce, all_to_all, all_to_allv, barrier, broadcast, fuse, gather, gatherv, reduce,
    reduce_scatter, reduce_scatterv, scatter, scatterv,
)
from .errors import Aborted, Error, Invalid, Mismatch, RankLost, System, Timeout, Unavailable
from .insight import explain, info, reconcile, report, trace, watch
from .job import finalize, get_backends, get_rank, get_size, init, is_initialized, new_group, split, synchronize, world
from .measure import bench, replay, soak, tune
from .messages import ANY_SOURCE, Message, batch, incoming, outgoing, recv, send, sendrecv
from .reduce_op import ReduceOp

__all__ = [
    "ANY_SOURCE", "Aborted", "Comm", "Error", "ErrorFeedback", "Invalid", "Message", "Mismatch", "RankLost", "ReduceOp", "System", "Timeout",
    "Unavailable", "Work", "__version__", "all_gather", "all_gatherv", "all_reduce", "all_to_all", "all_to_allv", "barrier",
    "batch", "bench", "broadcast", "explain", "finalize", "fuse", "gather", "gatherv", "get_backends", "get_rank", "get_size",
    "incoming", "info", "init", "is_initialized", "lint", "new_group", "outgoing", "plan", "plan_search", "plan_sweep", "reconcile", "recv",
    "reduce", "reduce_scatter", "reduce_scatterv", "replay", "report", "scatter", "scatterv", "scope", "send", "sendrecv",
    "shape", "shape_compare", "shape_gemm", "shape_search", "soak", "split", "synchronize", "trace", "tune", "watch",
    "world",
]
