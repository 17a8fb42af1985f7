"""Runs programs that name another backend: groups with that backend become Medley's."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

_replaced: set[str] = set()
_original: Callable[..., Any] | None = None


def replace(*names: str) -> None:
    """Process groups made from now on with these backends ("nccl", "gloo") run on Medley.

    torch still reports the name the program gave, so that code which checks dist.get_backend() behaves as before.
    Options of the other backend are ignored. Without names, nothing is replaced any more.
    """
    global _original
    for name in names:
        if name.lower() not in dist.Backend.backend_list or name.lower() in ("undefined", "medley"):
            raise ValueError(f'medley.torch.replace: torch has no backend "{name}" to replace')
    _replaced.clear()
    _replaced.update(name.lower() for name in names)
    if _original is None:
        _original = c10d._new_process_group_helper
        c10d._new_process_group_helper = _wrap(_original)


def _translate(backend: str) -> str:
    """The backend string with replaced names; torch's forms are "nccl", "cpu:gloo,cuda:nccl" and "undefined", which
    selects torch's default for the devices of this machine."""
    text = str(backend).lower()
    if text == str(dist.Backend.UNDEFINED):
        text = str(c10d.BackendConfig(dist.Backend.UNDEFINED))
    parts = [part.rpartition(":") for part in text.split(",")]
    if not any(name in _replaced for _, _, name in parts):
        return backend
    if all(name in _replaced for _, _, name in parts):   # which also makes it the group's default backend
        return "medley"
    return ",".join(device + colon + ("medley" if name in _replaced else name) for device, colon, name in parts)


def _wrap(helper: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(helper)
    options_name = "backend_options" if "backend_options" in signature.parameters else "pg_options"

    @functools.wraps(helper)
    def new_process_group_helper(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        asked = call.arguments["backend"]
        given = _translate(asked)
        if given == asked:
            return helper(*args, **kwargs)
        call.arguments["backend"] = dist.Backend(given)
        options = call.arguments.get(options_name)
        if options is not None and not type(options).__module__.startswith("medley"):
            call.arguments[options_name] = None
        made = helper(*call.args, **call.kwargs)
        group = made[0] if isinstance(made, tuple) else made
        world = c10d._world
        if group in world.pg_map:   # the name that the program uses
            world.pg_map[group] = (asked, world.pg_map[group][1])
            world.pg_backend_config[group] = str(c10d.BackendConfig(asked))
        return made

    return new_process_group_helper
