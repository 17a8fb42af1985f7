"""Registers the backend "medley" with torch.distributed."""

from __future__ import annotations

import atexit
import datetime
import os
import sys
from typing import Any

import torch
import torch.distributed as dist

from . import _c10d


def _device(given: torch.device | None) -> int:
    """The CUDA device of this rank: init_process_group's device_id, the one that the program has set, or, as programs
    may set it later, the one with the local rank."""
    if given is not None and given.type == "cuda":
        return given.index
    local = int(os.environ.get("LOCAL_RANK", 0))
    if not torch.cuda.is_available():
        return local
    current = torch.cuda.current_device() if torch.cuda.is_initialized() else 0   # asking would start CUDA
    return local if current == 0 and local < torch.cuda.device_count() else current


def create(group: Any, options: Any = None) -> dist.Backend:
    """Called by torch for every process group; `group` is its _DistributedBackendOptions, `options` its pg_options."""
    if options is None:
        options = _c10d.Options()
    elif not isinstance(options, _c10d.Options):
        raise TypeError(f"the backend medley takes pg_options=medley.torch.Options(...), not {type(options).__name__}")
    device = _device(sys._getframe(1).f_locals.get("device_id"))   # torch does not pass it on, but its caller has it
    return _c10d.create(group.store, group.group_rank, group.group_size, group.group_id, list(group.global_ranks_in_group),
                        group.timeout.total_seconds(), options, device)


def register() -> None:
    if "medley" not in dist.Backend.backend_list:
        dist.Backend.register_backend("medley", create, extended_api=True, devices=["cpu", "cuda"])
        # Futures' callbacks that still run at exit get this long before the interpreter ends.
        atexit.register(_c10d.wait_for_callbacks, at_most=datetime.timedelta(seconds=5))
