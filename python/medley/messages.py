"""Sends and receives, alone and in batches.

>>> import numpy as np, medley
>>> medley.init()
>>> there, here = np.arange(3.0), np.zeros(3)
>>> medley.sendrecv("auto", there, 0, here, 0)     # to itself; with more ranks, to a neighbour
0
>>> here
array([0., 1., 2.])
>>> medley.finalize()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, NamedTuple

from ._call import Array, Keywords, prepare
from ._core import Comm, Work

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: A receive from this rank takes the first message of its tag, whoever sent it.
ANY_SOURCE = -1


def send(backend: str, tensor: Array, dst: int, *, group: Comm | None = None, **keywords: Unpack[Keywords]) -> Work | None:
    """Sends to one rank.

    >>> medley.init()
    >>> x = np.array([7.0])
    >>> work = medley.send("auto", x, 0, tag=1, async_op=True)
    >>> y = np.zeros(1)
    >>> medley.recv("auto", y, 0, tag=1)
    0
    >>> work.wait(), y[0] == 7
    (True, np.True_)
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.send(options, tensor, dst)


def recv(backend: str, tensor: Array, src: int = ANY_SOURCE, *, group: Comm | None = None,
         **keywords: Unpack[Keywords]) -> Work | int | None:
    """Receives from one rank, or from any, and returns the sender's rank; the message may be shorter than the array."""
    comm, options = prepare(backend, group, keywords)
    return comm.recv(options, tensor, src)


def sendrecv(backend: str, outgoing: Array, dst: int, incoming: Array, src: int, *, group: Comm | None = None,
             **keywords: Unpack[Keywords]) -> Work | int | None:
    """Sends and receives at the same time, so that a ring of ranks cannot deadlock."""
    comm, options = prepare(backend, group, keywords)
    return comm.sendrecv(options, outgoing, dst, incoming, src)


class Message(NamedTuple):
    """One message of a batch; outgoing() and incoming() make them."""

    is_send: bool
    tensor: Array
    peer: int
    tag: int = 0


def outgoing(tensor: Array, dst: int, tag: int = 0) -> Message:
    """A message to send, for batch()."""
    return Message(True, tensor, dst, tag)


def incoming(tensor: Array, src: int, tag: int = 0) -> Message:
    """A message to receive, for batch()."""
    return Message(False, tensor, src, tag)


def batch(backend: str, messages: Iterable[Message], *, group: Comm | None = None,
          **keywords: Unpack[Keywords]) -> Work | int | None:
    """Issues all messages together, in any order; complete when all are.

    >>> medley.init()
    >>> a, b = np.array([1, 2]), np.zeros(2, dtype=int)
    >>> _ = medley.batch("auto", [medley.incoming(b, 0), medley.outgoing(a, 0)])
    >>> b
    array([1, 2])
    >>> medley.finalize()
    """
    comm, options = prepare(backend, group, keywords)
    return comm.batch(options, [(m.is_send, m.tensor, m.peer, m.tag) for m in messages])
