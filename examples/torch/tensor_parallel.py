"""How the GPT is sharded for tensor and sequence parallelism: matrices by columns, then by rows; norms on parts of the
sequence. Used by tp_gpt.py and parallel_3d.py."""

from __future__ import annotations

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, parallelize_module,
)


def cut_block(block: nn.Module, mesh: DeviceMesh) -> None:
    whole, part = (Replicate(),), (Shard(1),)   # activations between blocks each hold a part of the sequence
    parallelize_module(block, mesh, {
        "norm1": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=part, desired_input_layouts=whole),
        "attention.query": ColwiseParallel(), "attention.key": ColwiseParallel(), "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=Shard(1)),
        "norm2": SequenceParallel(),
        "mlp": PrepareModuleInput(input_layouts=part, desired_input_layouts=whole),
        "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(output_layouts=Shard(1)),
    })


def cut(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    plan = {}
    if model.tokens is not None:
        plan["tokens"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
        plan["positions"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0))
    if model.head is not None:
        plan["norm"] = SequenceParallel()
        plan["head"] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    parallelize_module(model, mesh, plan)
    for block in model.blocks:
        cut_block(block, mesh)
    return model
