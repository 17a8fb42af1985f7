"""Enables features that torch.distributed reserves for the backends it knows by name for groups of medley.

torch rejects monitored_barrier unless the group is called "gloo", and sequence numbers unless its type is that of one of
torch's own backends, before it asks the backend. Other groups are unaffected.
"""

from __future__ import annotations

import functools
from datetime import timedelta
from typing import Any, Callable

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ._c10d import ProcessGroupMedley


def _medley_backend(group: dist.ProcessGroup) -> ProcessGroupMedley | None:
    for device in group._device_types:
        backend = group._get_backend(device)
        while hasattr(backend, "wrapped_pg"):   # TORCH_DISTRIBUTED_DEBUG=DETAIL
            backend = backend.wrapped_pg
        if isinstance(backend, ProcessGroupMedley):
            return backend
    return None


def _with_monitored_barrier(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def monitored_barrier(group: dist.ProcessGroup | None = None, timeout: timedelta | float | None = None,
                          wait_all_ranks: bool = False) -> None:
        if c10d._rank_not_in_group(group) or "medley" not in str(dist.get_backend(group)):
            return original(group, timeout, wait_all_ranks)
        if isinstance(timeout, (int, float)):
            timeout = timedelta(seconds=timeout)
        given: dict[str, Any] = {} if timeout is None else {"timeout": timeout}   # without one: the group's own
        return (group or c10d._get_default_group()).monitored_barrier(wait_all_ranks=wait_all_ranks, **given)

    return monitored_barrier


def _asking_the_backend(name: str) -> Callable[[dist.ProcessGroup], Any]:
    original = getattr(dist.ProcessGroup, name)

    @functools.wraps(original)
    def method(self: dist.ProcessGroup) -> Any:
        backend = _medley_backend(self)
        return original(self) if backend is None else getattr(backend, name)()

    return method


def install() -> None:
    dist.monitored_barrier = c10d.monitored_barrier = _with_monitored_barrier(c10d.monitored_barrier)
    for name in ("_get_sequence_number_for_group", "_set_sequence_number_for_group"):
        setattr(dist.ProcessGroup, name, _asking_the_backend(name))
