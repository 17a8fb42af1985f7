"""Runs a function on ranks that have a torch process group of the backend medley."""

from __future__ import annotations

import datetime
from typing import Any, Callable

import ranks


def _in_group(function: Callable[..., Any], timeout: float, arguments: tuple) -> Any:
    import torch
    import torch.distributed as dist

    import medley.torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group("medley", timeout=datetime.timedelta(seconds=timeout))
    try:
        return function(*arguments)
    finally:
        dist.destroy_process_group()


def run(size: int, function: Callable[..., Any], *arguments: Any, group_timeout: float = 60, **options: Any) -> list[Any]:
    return ranks.run(size, _in_group, function, group_timeout, arguments, **options)
