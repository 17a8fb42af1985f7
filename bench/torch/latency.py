"""The time of a small all_reduce, interleaved: gloo and medley, called at c10d's Backend and from Python's torch.distributed;
medley also from `import medley`.

    python -m torch.distributed.run --nproc-per-node 2 bench/torch/latency.py [--bytes 4] [--rounds 20] [--calls 200]

Rank 0 prints the median over the rounds of the mean time of a call, in microseconds, and each round's minimum.
The time at the Backend is that of the C++ call from Python (one pybind call, no Python code of torch).
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
import torch.distributed as dist

import medley.torch  # noqa: F401


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("medley")
    groups = {"gloo": dist.new_group(backend="gloo"), "medley": dist.group.WORLD}
    tensor = torch.ones(max(arguments.bytes // 4, 1))
    waits, returns = dist.AllreduceOptions(), dist.AllreduceOptions()
    waits.asyncOp = False

    def at_backend(name: str, options: dist.AllreduceOptions):
        backend = groups[name]._get_backend(torch.device("cpu"))
        return lambda: backend.allreduce([tensor], options).wait()

    cases = {}
    for name in groups:
        cases[f"{name}, c10d Backend"] = at_backend(name, waits)
        cases[f"{name}, c10d Backend, async and wait"] = at_backend(name, returns)
        cases[f"{name}, dist.all_reduce"] = lambda name=name: dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=groups[name])
    medley.init()
    array = tensor.numpy()
    cases["medley.all_reduce on a NumPy array"] = lambda: medley.all_reduce("auto", array, "max")

    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(arguments.rounds):
        for name, call in cases.items():
            dist.barrier()
            tensor.fill_(1)
            call()
            began = time.perf_counter()
            for _ in range(arguments.calls):
                call()
            times[name].append((time.perf_counter() - began) / arguments.calls * 1e6)
    if dist.get_rank() == 0:
        print(f"{'median us':>10} {'least us':>10}  {arguments.bytes}-byte all_reduce, {dist.get_world_size()} ranks")
        for name, seen in times.items():
            print(f"{statistics.median(seen):10.1f} {min(seen):10.1f}  {name}")
    medley.finalize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
