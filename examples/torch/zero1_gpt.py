"""A GPT trained with ZeRO stage 1: like DDP, but every rank keeps and steps only a part of the optimizer's state.

    torchrun --nproc-per-node 2 zero1_gpt.py --backend medley
"""

import torch
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import common
import gpt

arguments = common.start(__doc__)
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
model = common.named(DistributedDataParallel(gpt.seeded().to(arguments.device)))
optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)

losses, clock = [], common.Clock()
for tokens, targets in steps:
    optimizer.zero_grad()
    loss = gpt.loss_of(model(common.my_part(tokens).to(arguments.device)), common.my_part(targets).to(arguments.device))
    loss.backward()
    optimizer.step()   # broadcasts the parameters that each rank has stepped
    losses.append(common.mean_over(loss))
    clock.tick()

common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=clock.times)
