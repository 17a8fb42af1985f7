"""A GPT trained with fully sharded data parallelism (FSDP2): every rank keeps a part of each parameter, gathers a block
when it is used and scatters its gradients.

    torchrun --nproc-per-node 2 fsdp2_gpt.py --backend medley
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import common
import gpt

arguments = common.start(__doc__)
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
mesh = init_device_mesh(arguments.device, (dist.get_world_size(),))
model = gpt.seeded().to(arguments.device)
for block in model.blocks:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
common.named(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

losses, clock = [], common.Clock()
for tokens, targets in steps:
    optimizer.zero_grad()
    loss = gpt.loss_of(model(common.my_part(tokens).to(arguments.device)), common.my_part(targets).to(arguments.device))
    loss.backward()
    optimizer.step()
    losses.append(common.mean_over(loss))
    clock.tick()

common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)
