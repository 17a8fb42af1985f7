"""This process's membership in a job: starting and ending it, who the ranks are, groups of them.

>>> import medley
>>> medley.init(["shm"])
>>> medley.get_rank(), medley.get_size()
(0, 1)
>>> medley.split(color=0)
<medley.Comm world/1.0: rank 0 of 1>
>>> medley.finalize()
"""

from __future__ import annotations

import atexit
from typing import Iterable, TypedDict

from . import _core
from ._core import Comm
from .errors import Invalid


class BackendInfo(TypedDict):
    """A backend as this job sees it; `reason` says why it is not available."""

    name: str
    version: str
    available: bool
    reason: str


_job: _core.Job | None = None
_world: Comm | None = None


def init(backends: Iterable[str] = (), *, deadline: float | None = None, progress_thread: bool = False,
         exact: bool = False) -> None:
    """Joins the job that the launcher started, with these backends in order of preference; default: all that work.

    `deadline` is the default limit for an operation, in seconds (600). With `progress_thread` async operations progress
    in the background; without it, they progress during any Medley call. With `exact` every receive has exactly the size of
    its message, so that sizes may decide the routes of messages (docs/guarantees.md); groups inherit it.

    >>> medley.init(["shm"], deadline=60)
    >>> medley.is_initialized()
    True
    >>> medley.finalize()
    """
    global _job, _world
    if _job is not None:
        raise Invalid("medley.init was called twice; call medley.finalize first")
    if isinstance(backends, str):
        raise Invalid(f'medley.init takes a list of backends, such as ["{backends}"]')
    _job = _core.Job(list(backends), deadline, progress_thread, exact)
    _world = _core.world(_job)


def is_initialized() -> bool:
    """Whether this process is in a job."""
    return _job is not None


def _current() -> _core.Job:
    if _job is None:
        raise Invalid("call medley.init() first")
    return _job


def world() -> Comm:
    """The group of all ranks."""
    _current()
    assert _world is not None
    return _world


def get_rank(group: Comm | str | None = None) -> int:
    """This process's rank in the world or in a group; a backend's name is accepted, but ranks are the same for all."""
    return group.rank if isinstance(group, Comm) else world().rank


def get_size(group: Comm | str | None = None) -> int:
    """How many ranks there are, in the job or in a group."""
    return group.size if isinstance(group, Comm) else world().size


def get_backends() -> list[BackendInfo]:
    """The available backends, and why requested ones are not available.

    >>> medley.init(["shm"])
    >>> [b["name"] for b in medley.get_backends() if b["available"]]
    ['shm']
    >>> medley.finalize()
    """
    return _current().backends()


def new_group(ranks: Iterable[int], parent: Comm | None = None, *, exact: bool | None = None) -> Comm | None:
    """A group of the listed ranks of `parent`, in that order; None on the others. Called by every rank of `parent`.

    `exact`: whether its messages have exact sizes, as in `init`; default: as `parent`.

    >>> medley.init()
    >>> medley.new_group([0]).size
    1
    >>> medley.finalize()
    """
    return (parent or world()).subset(list(ranks), exact)


def split(color: int, key: int = 0, parent: Comm | None = None, *, exact: bool | None = None) -> Comm | None:
    """A group of the ranks that give one color, ordered by (key, rank); None for a negative color. `exact` as in `new_group`."""
    return (parent or world()).split(color, key, exact)


def synchronize(backend: str | None = None) -> None:
    """Waits for every operation issued so far and raises the first error. A backend's name is accepted; since operations
    that touch the same memory are ordered across backends, it waits for all of them."""
    _current().synchronize()


def finalize() -> None:
    """Waits for pending operations and leaves the job; medley.init may be called again."""
    global _job, _world
    if _job is None:
        return
    try:
        _job.synchronize()
    finally:
        _job, _world = None, None


def _leave() -> None:
    """At exit: ends the job while Python is still alive, without waiting for other ranks."""
    global _job, _world
    _job, _world = None, None


atexit.register(_leave)
