"""A job over plain NCCL for tests/gpu/nccl_profiler: DDP steps of a small GPT, or the token exchanges of a MoE layer.
Prints how many bytes its own calls passed to each operation."""

import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples" / "torch"))
import gpt  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=("ddp", "moe"))
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--slow", type=int, default=-1, help="this rank computes for 20 ms longer in every step")
arguments = parser.parse_args()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(0)   # all ranks share it
dist.init_process_group("nccl")
torch.manual_seed(0)

if arguments.kind == "ddp":
    model = DistributedDataParallel(gpt.GPT().cuda(), bucket_cap_mb=0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, gpt.VOCABULARY, (4, gpt.LENGTH + 1), device="cuda")

    def step():
        optimizer.zero_grad()
        gpt.loss_of(model(tokens[:, :-1]), tokens[:, 1:]).backward()
        optimizer.step()
else:
    given = torch.randn(size * 64, 256, device="cuda")
    taken = torch.empty_like(given)

    def step():
        for _ in range(4):
            dist.all_to_all_single(taken, given)
        dist.all_reduce(given)

print(f"pid {rank} {os.getpid()}", flush=True)
for _ in range(arguments.steps):
    if rank == arguments.slow:
        torch.cuda.synchronize()
        time.sleep(0.02)
    step()
    torch.cuda.synchronize()
if rank == 0 and arguments.kind == "moe":
    print("bytes " + json.dumps({"all_to_all": arguments.steps * 4 * given.nbytes, "all_reduce": arguments.steps * given.nbytes}))
dist.destroy_process_group()
