"""Chooses the backend of some calls."""

from __future__ import annotations

import contextlib
from typing import Iterator

from . import _c10d


@contextlib.contextmanager
def route(rules: str) -> Iterator[None]:
    """Operations issued inside use the backend that `rules` name, such as "all_to_all=mpi; all_reduce=shm" or
    "*=shm" (docs/routing.md); not by size.

    An operation's rule also covers its v-collective. Inner rules override outer ones, and those override a group's own.
    They apply to every thread of the process, because the backward pass has its own threads; all ranks of a group must
    use the same rules.
    """
    _c10d.push_route(rules)
    try:
        yield
    finally:
        _c10d.pop_route()
