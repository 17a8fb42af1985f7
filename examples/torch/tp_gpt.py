"""A GPT trained with tensor parallelism and sequence parallelism (`parallelize_module`): every rank has a part of each
matrix; between them, all_gather and reduce_scatter.

    torchrun --nproc-per-node 2 tp_gpt.py --backend medley
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import common
import gpt
import tensor_parallel

arguments = common.start(__doc__)
steps = common.batches(arguments.steps, batch=4, length=gpt.LENGTH)
mesh = init_device_mesh(arguments.device, (dist.get_world_size(),), mesh_dim_names=("tp",))
model = common.named(tensor_parallel.cut(gpt.seeded().to(arguments.device), mesh))
assert model.head.weight.to_local().shape[0] * dist.get_world_size() == model.head.weight.shape[0]   # each rank has its part
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)

losses, clock = [], common.Clock()
for tokens, targets in steps:
    optimizer.zero_grad()
    loss = gpt.loss_of(model(tokens.to(arguments.device)), targets.to(arguments.device))
    loss.backward()
    optimizer.step()
    losses.append(common.mean_over(loss))   # the same on all ranks
    clock.tick()

common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)
