"""A GPT trained with pipeline parallelism, schedule 1F1B: every rank has some of the layers; activations and their
gradients are sent between neighbours.

    torchrun --nproc-per-node 2 pp_gpt.py --backend medley
"""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import common
import gpt

arguments = common.start(__doc__)
rank, size = dist.get_rank(), dist.get_world_size()
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)

whole = gpt.seeded()
layers = gpt.LAYERS // size
first, last = rank * layers, (gpt.LAYERS if rank == size - 1 else (rank + 1) * layers)
part = gpt.GPT(first, last)
part.load_state_dict({name.replace(f"blocks.{i}.", f"blocks.{i - first}."): value for i in range(first, last)
                      for name, value in whole.state_dict().items()
                      if name.startswith(f"blocks.{i}.") or (not name.startswith("blocks.") and name in part.state_dict())})
common.named(part).to(arguments.device)
stage = PipelineStage(part, rank, size, torch.device(arguments.device))
schedule = Schedule1F1B(stage, n_microbatches=2 * size, loss_fn=gpt.loss_of)
optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3)

losses, clock = [], common.Clock()
for tokens, targets in steps:
    optimizer.zero_grad()
    of_parts: list[torch.Tensor] = []
    if rank == 0:
        schedule.step(tokens.to(arguments.device), target=targets.to(arguments.device), losses=of_parts)
    else:
        schedule.step(target=targets.to(arguments.device), losses=of_parts)
    optimizer.step()
    loss = torch.stack(of_parts).mean() if of_parts else torch.zeros(())
    loss = loss.detach().to(arguments.device)
    with common.between_steps():
        dist.broadcast(loss, src=size - 1)   # only the last stage has it
    losses.append(loss.item())
    clock.tick()

common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)
