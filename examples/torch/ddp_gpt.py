"""A GPT trained with data parallelism: every rank has the model and a part of the batch; DDP averages the gradients.

    torchrun --nproc-per-node 2 ddp_gpt.py --backend medley
"""

import torch
from torch.nn.parallel import DistributedDataParallel

import common
import gpt

arguments = common.start(__doc__)
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
model = common.named(DistributedDataParallel(gpt.seeded().to(arguments.device), bucket_cap_mb=0.25))
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
