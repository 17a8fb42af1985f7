"""Choosing the backend of some calls."""

from __future__ import annotations

import contextlib
from typing import Iterator

from . import _c10d


@contextlib.contextmanager
def route(rules: str) -> Iterator[None]:
    """Operations issued inside go over the backend that `rules` name, such as "all_to_all=mpi; all_reduce=shm" or
    "*=shm" (docs/routing.md); not by size.

    An operation's rule covers its form with uneven parts. Inner rules go before outer ones, these before a group's own.
    They hold for every thread of the process, since the backward pass has threads of its own; all ranks of a group must
    use the same.
    """
    _c10d.push_route(rules)
    try:
        yield
    finally:
        _c10d.pop_route()
