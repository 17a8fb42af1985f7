"""A training loop with accelerate: torchrun --nproc-per-node 2 accelerate_loop.py {gloo,medley}"""

import sys

import torch
import torch.distributed as dist

if sys.argv[1] == "medley":
    import medley.torch
    medley.torch.replace("gloo")

from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8)
model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), data)
losses = []
for inputs, targets in data:
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    losses.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
assert accelerator.gather_for_metrics(torch.tensor([accelerator.process_index])).tolist() == list(range(accelerator.num_processes))
if accelerator.is_main_process:
    print("RESULT", type(dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))).__name__, *losses)
accelerator.end_training()
dist.destroy_process_group()
