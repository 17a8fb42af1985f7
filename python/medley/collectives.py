"""Collectives: every rank of the group calls them in the same order.

The first argument is a backend's name, or "auto" for the best route. With async_op=True they return a Work immediately;
otherwise they return None when they are complete. `group` is a Comm of new_group() or split(); default: the world.
In place: omit `out` (all_reduce, reduce), or pass this rank's part of the large array as the small one.

>>> import numpy as np, medley
>>> medley.init()
>>> mine, everyone = np.arange(2), np.zeros((medley.get_size(), 2), dtype=int)
>>> medley.all_gather("auto", mine, everyone)
>>> everyone[medley.get_rank()]
array([0, 1])
>>> medley.finalize()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence, Union

from ._call import Array, Keywords, prepare
from ._core import Comm, FuseScope, Work
from .errors import Invalid
from .job import world

if TYPE_CHECKING:
    from typing_extensions import Unpack

Counts = Sequence[int]
Arrays = Union[Array, Sequence[Array]]


def fuse(group: Comm | None = None) -> FuseScope:
    """Collects the small async collectives of a group inside `with`, so that many arrays travel in one message.

    They are issued when the scope ends, at flush(), before any other collective of the group, and whenever 4 MiB are collected. All
    ranks open and end it at the same places. Wait for a Work only after its operation was issued.

    >>> medley.init()
    >>> gradients = [np.ones(n) for n in (3, 5, 7)]
    >>> with medley.fuse():
    ...     works = [medley.all_reduce("auto", g, async_op=True) for g in gradients]
    >>> for work in works: _ = work.wait()
    >>> medley.finalize()
    """
    return FuseScope(world() if group is None else group)


def broadcast(backend: str, tensor: Arrays, root: int = 0, *, group: Comm | None = None,
              **keywords: Unpack[Keywords]) -> Work | None:
    """All ranks get root's array, or those of a list, which travel together.

    >>> medley.init()
    >>> medley.broadcast("auto", np.ones(3), root=0)
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    if isinstance(tensor, (list, tuple)):
        return comm.broadcast_list(options, tensor, root)
    return comm.broadcast(options, tensor, root)


def reduce(backend: str, tensor: Array, root: int = 0, op: str = "sum", *, out: Array | None = None,
           group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """Root gets the reduction over all ranks, in `out` or in place.

    >>> medley.init()
    >>> total = np.zeros(2)
    >>> medley.reduce("auto", np.ones(2), root=0, out=total)
    >>> total
    array([1., 1.])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.reduce(options, tensor, tensor if out is None else out, op, root)


def all_reduce(backend: str, tensor: Arrays, op: str = "sum", *, out: Arrays | None = None, group: Comm | None = None,
               **keywords: Unpack[Keywords]) -> Work | None:
    """All ranks get the reduction over all ranks, with identical bits, in `out` or in place. Arrays of a list travel together.

    >>> medley.init()
    >>> x = np.array([1.5, 2.5])
    >>> medley.all_reduce("auto", x, "avg")
    >>> x
    array([1.5, 2.5])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    if isinstance(tensor, (list, tuple)):
        return comm.all_reduce_list(options, tensor, tensor if out is None else _list(out), op)
    return comm.all_reduce(options, tensor, tensor if out is None else out, op)


def gather(backend: str, tensor: Array, out: Array | None = None, root: int = 0, *, group: Comm | None = None,
           **keywords: Unpack[Keywords]) -> Work | None:
    """Root gets every rank's array in `out`, in rank order; the others omit `out`.

    >>> medley.init()
    >>> parts = np.zeros((1, 2))
    >>> medley.gather("auto", np.array([3.0, 4.0]), parts)
    >>> parts
    array([[3., 4.]])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.gather(options, tensor, out, root)


def all_gather(backend: str, tensor: Arrays, out: Arrays, *, group: Comm | None = None,
               **keywords: Unpack[Keywords]) -> Work | None:
    """All ranks get every rank's array in `out`, in rank order."""
    comm, options = prepare(backend, group, keywords)
    if isinstance(tensor, (list, tuple)):
        return comm.all_gather_list(options, tensor, _list(out))
    return comm.all_gather(options, tensor, out)


def scatter(backend: str, out: Array, tensor: Array | None = None, root: int = 0, *, group: Comm | None = None,
            **keywords: Unpack[Keywords]) -> Work | None:
    """Each rank gets its part of root's array in `out`; ranks other than root omit `tensor`.

    >>> medley.init()
    >>> part = np.zeros(2)
    >>> medley.scatter("auto", part, np.array([5.0, 6.0]))
    >>> part
    array([5., 6.])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.scatter(options, tensor, out, root)


def reduce_scatter(backend: str, tensor: Arrays, out: Arrays, op: str = "sum", *, group: Comm | None = None,
                   **keywords: Unpack[Keywords]) -> Work | None:
    """Each rank gets its part of the reduction over all ranks.

    >>> medley.init()
    >>> part = np.zeros(2, dtype=np.int32)
    >>> medley.reduce_scatter("auto", np.array([1, 2], dtype=np.int32), part)
    >>> part
    array([1, 2], dtype=int32)
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    if isinstance(tensor, (list, tuple)):
        return comm.reduce_scatter_list(options, tensor, _list(out), op)
    return comm.reduce_scatter(options, tensor, out, op)


def all_to_all(backend: str, tensor: Array, out: Array, *, group: Comm | None = None,
               **keywords: Unpack[Keywords]) -> Work | None:
    """Part i of each rank's array goes to rank i, which receives the parts in rank order.

    >>> medley.init()
    >>> x, y = np.arange(2.0), np.zeros(2)
    >>> medley.all_to_all("auto", x, y)
    >>> y
    array([0., 1.])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.all_to_all(options, tensor, out)


def barrier(backend: str = "auto", *, group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """Waits for all ranks."""
    comm, options = prepare(backend, group, keywords)
    return comm.barrier(options)


def gatherv(backend: str, tensor: Array, out: Array | None, counts: Counts, root: int = 0, *, offsets: Counts = (),
            group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """gather with parts of different sizes: counts[i] elements of rank i, packed or at offsets[i]."""
    comm, options = prepare(backend, group, keywords)
    return comm.gatherv(options, tensor, out, list(counts), list(offsets), root)


def scatterv(backend: str, out: Array, tensor: Array | None, counts: Counts, root: int = 0, *, offsets: Counts = (),
             group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """scatter with parts of different sizes."""
    comm, options = prepare(backend, group, keywords)
    return comm.scatterv(options, tensor, list(counts), list(offsets), out, root)


def all_gatherv(backend: str, tensor: Array, out: Array, counts: Counts, *, offsets: Counts = (),
                group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """all_gather with parts of different sizes, the same counts on every rank.

    >>> medley.init()
    >>> out = np.zeros(3)
    >>> medley.all_gatherv("auto", np.arange(3.0), out, counts=[3])
    >>> out
    array([0., 1., 2.])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.all_gatherv(options, tensor, out, list(counts), list(offsets))


def reduce_scatterv(backend: str, tensor: Array, out: Array, counts: Counts, op: str = "sum", *, offsets: Counts = (),
                    group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """reduce_scatter with parts of different sizes, the same counts on every rank."""
    comm, options = prepare(backend, group, keywords)
    return comm.reduce_scatterv(options, tensor, list(counts), list(offsets), out, op)


def all_to_allv(backend: str, tensor: Array, in_counts: Counts, out: Array, out_counts: Counts, *,
                in_offsets: Counts = (), out_offsets: Counts = (), group: Comm | None = None,
                **keywords: Unpack[Keywords]) -> Work | None:
    """all_to_all with parts of different sizes: in_counts[i] elements go to rank i, out_counts[i] come from it.

    >>> medley.init()
    >>> x, y = np.arange(3.0), np.zeros(3)
    >>> medley.all_to_allv("auto", x, [3], y, [3])
    >>> y
    array([0., 1., 2.])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.all_to_allv(options, tensor, list(in_counts), list(in_offsets), out, list(out_counts), list(out_offsets))


def _list(out: Arrays) -> Sequence[Array]:
    if not isinstance(out, (list, tuple)):
        raise Invalid(f"a list of tensors needs a list of outputs, not one {type(out).__name__}")
    return out
