"""One rank of bench/torch/hosts: trains an example over each candidate in turn, in one process, so that noise affects all alike.

A candidate is a library ("mpi": every operation over it) or "auto", which follows MEDLEY_TABLE. Every training starts from the same
weights and data, so all losses must be equal within the rounding of sums. Rank 0 prints a line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

import medley.torch  # noqa: E402
import common  # noqa: E402


def trainer(name: str, steps: int):
    """(samples of a step, a function that trains from the beginning and returns losses and step times)."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if name == "tp_dp_gpt":
        import gpt
        import tp_dp_gpt as example
        samples, mesh = gpt.size("BATCH", 8), example.mesh_of("cpu", ranks)
        data = common.batches(steps, batch=samples, length=gpt.LENGTH)
        train = lambda clock: example.train(common.named(example.model_of(mesh, "cpu")), data, "cpu", mesh, clock)
    elif name == "moe_gpt":
        import gpt
        import moe_gpt as example
        samples = gpt.size("BATCH", 8)
        data = common.batches(steps, batch=samples, length=gpt.LENGTH)
        train = lambda clock: example.train(common.named(example.model_of(rank, ranks)), data, "cpu", True, clock)
    else:
        import dlrm as example
        data = example.clicks(steps)
        samples, train = example.BATCH, lambda clock: example.train(common.named(example.model_of(rank, ranks)), data, "cpu", True, clock)

    def run() -> tuple[list[float], list[float]]:
        clock = common.Clock()
        losses = train(clock)
        return losses, clock.times
    return samples, run


def over(candidate: str) -> contextlib.AbstractContextManager:
    return contextlib.nullcontext() if candidate == "auto" else medley.torch.route(f"*={candidate}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=("moe_gpt", "dlrm", "tp_dp_gpt"))
    parser.add_argument("--candidates", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    arguments = parser.parse_args()
    dist.init_process_group("medley")
    samples, run = trainer(arguments.example, arguments.steps)
    candidates = arguments.candidates.split(",")
    step_us: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    losses: dict[str, list[float]] = {}
    for number in range(arguments.rounds):
        for candidate in candidates if number % 2 == 0 else candidates[::-1]:
            with over(candidate):
                losses[candidate], times = run()
            step_us[candidate].append(1e6 * statistics.median(times))
    if dist.get_rank() == 0:
        print("RESULT", json.dumps({"example": arguments.example, "samples": samples, "step_us": step_us, "losses": losses}), flush=True)
    with common.between_steps():
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
