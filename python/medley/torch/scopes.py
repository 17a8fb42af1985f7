"""Sets medley.scope to the current module and phase of a training step, with PyTorch's own hooks."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules import module as hooks
from torch.optim import optimizer
from torch.utils._pytree import tree_leaves

import medley

_names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
_installed = False


class _Place(threading.local):
    """This thread's position: the modules and optimizers it is inside of; outside of them, the phase that the last one left."""

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.outside = ""
        self.task = -1                       # the backward pass whose end already has a hook
        self.open: medley.scope | None = None

    def show(self) -> None:
        name = self.inside[-1] if self.inside else self.outside
        if self.open is not None:
            if self.open.name == name:
                return
            self.open.__exit__()
        self.open = medley.scope(name) if name else None
        if self.open is not None:
            self.open.__enter__()

    def enter(self, name: str) -> None:
        self.inside.append(name)
        self.show()

    def leave(self, outside: str | None) -> None:
        self.inside.pop()
        if outside is not None and not self.inside:
            self.outside = outside
        self.show()


_place = _Place()


def _before_forward(module: nn.Module, inputs: Any) -> None:
    name = _names.get(module)
    if name is not None:
        in_backward = torch._C._current_graph_task_id() != -1
        _place.enter(f"{'recompute' if in_backward else 'forward'}/{name}")


def _listen(module: nn.Module, inputs: Any, outputs: Any) -> None:
    """A module's backward pass begins with the first gradient of its outputs."""
    name = _names.get(module)
    tensors = [leaf for leaf in tree_leaves(outputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if name is not None and tensors:
        register_multi_grad_hook(tensors, lambda gradient: _in_backward(name), mode="any")


def _after_forward(module: nn.Module, inputs: Any, outputs: Any) -> None:
    if not _place.inside:
        return
    recomputed = _place.inside[-1].startswith("recompute")
    _place.leave(None if recomputed else "forward")   # a pipeline sends its activations now
    _listen(module, inputs, outputs)                  # its own hooks may have replaced the tensors


def _in_backward(name: str) -> None:
    task = torch._C._current_graph_task_id()
    if task != _place.task:
        _place.task = task
        torch.autograd.Variable._execution_engine.queue_callback(_after_backward)
    _place.outside = f"backward/{name}"
    _place.show()


def _after_backward() -> None:
    _place.task = -1
    _place.outside = "backward"   # a pipeline now sends its gradients, FSDP reduces those of the root
    _place.show()


def _before_step(stepping: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
    _place.enter(f"optimizer/{type(stepping).__name__}")


def _after_step(stepping: torch.optim.Optimizer, arguments: Any, keywords: Any) -> None:
    if _place.inside:
        _place.leave("")


def _install() -> None:
    global _installed
    if not _installed:
        # Global hooks run before a module's own, so that FSDP's operations in its hooks are also recorded
        # under the module.
        hooks.register_module_forward_pre_hook(_before_forward)
        hooks.register_module_forward_hook(_listen)
        optimizer.register_optimizer_step_pre_hook(_before_step)
        optimizer.register_optimizer_step_post_hook(_after_step)
        _installed = True


def scopes(model: nn.Module) -> nn.Module:
    """From now on operations of this model's training are recorded with module and phase: "forward/blocks.3.attention",
    "recompute/…", "backward/…" and "optimizer/AdamW". Returns the model::

        model = medley.torch.scopes(DistributedDataParallel(GPT()))

    Call it after wrapping the model. A hook takes a few microseconds per module and pass.
    """
    for name, module in model.named_modules():
        while name.startswith("module.") or name == "module":   # the level that DDP adds
            name = name[len("module."):]
        if module not in _names:
            module.register_forward_hook(_after_forward, always_call=True)   # last, after TP's operations in its hooks
        _names[module] = name or type(module).__name__
    _install()
    return model
