"""Tells torch.distributed that the backend "medley" exists and how a process group of it is made."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist

from . import _c10d


def create(group: Any, options: Any = None) -> dist.Backend:
    """Called by torch for every process group; `group` is its _DistributedBackendOptions, `options` its pg_options."""
    if options is None:
        options = _c10d.Options()
    elif not isinstance(options, _c10d.Options):
        raise TypeError(f"the backend medley takes pg_options=medley.torch.Options(...), not {type(options).__name__}")
    device = torch.cuda.current_device() if torch.cuda.is_available() else int(os.environ.get("LOCAL_RANK", 0))
    return _c10d.create(group.store, group.group_rank, group.group_size, group.group_id, list(group.global_ranks_in_group),
                        group.timeout.total_seconds(), options, device)


def register() -> None:
    if "medley" not in dist.Backend.backend_list:
        dist.Backend.register_backend("medley", create, extended_api=True, devices=["cpu", "cuda"])
