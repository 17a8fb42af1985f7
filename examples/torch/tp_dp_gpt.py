"""A GPT with tensor and sequence parallelism over neighbouring ranks, which share a host, and data parallelism (FSDP2) over the others.

    torchrun --nproc-per-node 4 tp_dp_gpt.py --backend medley           # 2 x 2
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard

import common
import gpt
import tensor_parallel


def mesh_of(device: str, ranks: int) -> DeviceMesh:
    tp = 2 if ranks % 2 == 0 else 1
    return init_device_mesh(device, (ranks // tp, tp), mesh_dim_names=("dp", "tp"))


def model_of(mesh: DeviceMesh, device: str) -> nn.Module:
    model = tensor_parallel.cut(gpt.seeded().to(device), mesh["tp"])
    if mesh["dp"].size() > 1:
        for block in model.blocks:
            fully_shard(block, mesh=mesh["dp"])
        fully_shard(model, mesh=mesh["dp"])
    return model


def train(model: nn.Module, steps, device: str, mesh: DeviceMesh, clock: common.Clock | None = None) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    dp, losses = mesh["dp"], []
    for tokens, targets in steps:
        tokens, targets = (common.my_part(part, dp.get_local_rank(), dp.size()).to(device) for part in (tokens, targets))
        optimizer.zero_grad()
        loss = gpt.loss_of(model(tokens), targets)
        loss.backward()
        optimizer.step()
        losses.append(common.mean_over(loss))
        if clock:
            clock.tick()
    return losses


def main() -> None:
    arguments = common.start(__doc__)
    steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
    mesh = mesh_of(arguments.device, dist.get_world_size())
    model = common.named(model_of(mesh, arguments.device))
    clock = common.Clock()
    losses = train(model, steps, arguments.device, mesh, clock)
    common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)


if __name__ == "__main__":
    main()
