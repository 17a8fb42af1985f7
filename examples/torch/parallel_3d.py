"""A GPT trained with data, tensor (and sequence) and pipeline parallelism together, on a mesh of ranks.

    torchrun --nproc-per-node 8 parallel_3d.py --backend medley         # 2 x 2 x 2
    torchrun --nproc-per-node 2 parallel_3d.py --backend medley         # 1 x 1 x 2: as far as there are ranks
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import common
import gpt
import tensor_parallel

arguments = common.start(__doc__)
size = dist.get_world_size()
shape = {1: (1, 1, 1), 2: (1, 1, 2), 4: (1, 2, 2), 8: (2, 2, 2)}[size]
mesh = init_device_mesh(arguments.device, shape, mesh_dim_names=("dp", "tp", "pp"))
dp, tp, pp = mesh["dp"], mesh["tp"], mesh["pp"]
stages, stage_rank = pp.size(), pp.get_local_rank()
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)

whole = gpt.seeded()
layers = gpt.LAYERS // stages
first, last = stage_rank * layers, (stage_rank + 1) * layers
part = gpt.GPT(first, last)
part.load_state_dict({name.replace(f"blocks.{i}.", f"blocks.{i - first}."): value for i in range(first, last)
                      for name, value in whole.state_dict().items()
                      if name.startswith(f"blocks.{i}.") or (not name.startswith("blocks.") and name in part.state_dict())})
part.to(arguments.device)
if tp.size() > 1:
    tensor_parallel.cut(part, tp)
if dp.size() > 1:
    fully_shard(part, mesh=dp)
common.named(part)
stage = PipelineStage(part, stage_rank, stages, torch.device(arguments.device), group=pp.get_group())
schedule = Schedule1F1B(stage, n_microbatches=2, loss_fn=gpt.loss_of)
optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3, foreach=False)

losses, clock = [], common.Clock()
for tokens, targets in steps:
    tokens = common.my_part(tokens, dp.get_local_rank(), dp.size()).to(arguments.device)
    targets = common.my_part(targets, dp.get_local_rank(), dp.size()).to(arguments.device)
    optimizer.zero_grad()
    of_parts: list[torch.Tensor] = []
    if stage_rank == 0:
        schedule.step(tokens, target=targets, losses=of_parts)
    else:
        schedule.step(target=targets, losses=of_parts)
    optimizer.step()
    loss = torch.stack(of_parts).mean().detach() if of_parts else torch.zeros((), device=arguments.device)
    loss = common.mean_over(loss, dp.get_group())
    shared = torch.tensor(loss, device=arguments.device)
    with common.between_steps():
        dist.broadcast(shared, group=pp.get_group(), group_src=stages - 1)
    losses.append(shared.item())
    clock.tick()

common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)
