"""The overhead of recording on a DDP step: without it, with the always-on ring, and with a full trace, interleaved in one run.

    python bench/torch/recording.py [-n 2] [--rounds 40] [--steps 8] [--json FILE]

The rank processes stay the same; for each measurement they join a new process group, which fixes what is recorded, and train
the GPT of examples/torch/ddp_gpt.py for a few steps. The first two, in which DDP makes its buckets, do not count. A round
measures each kind once, in its own order. Ratios are taken within a round; the interval is that of their median.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "examples" / "torch")]

import ranks  # noqa: E402

KINDS = ("off", "ring", "trace")


def set_recording(kind: str, folder: str) -> None:
    for name in ("MEDLEY_RECORD", "MEDLEY_TRACE"):
        os.environ.pop(name, None)
    if kind == "off":
        os.environ["MEDLEY_RECORD"] = "off"
    if kind == "trace":
        os.environ["MEDLEY_TRACE"] = folder


def train(steps: int) -> float:
    """The median step on this rank, in µs."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    import common
    import gpt

    model = DistributedDataParallel(gpt.seeded(), bucket_cap_mb=0.25)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    times = []
    for tokens, targets in common.batches(steps + 2, batch=8, length=gpt.LENGTH):
        began = time.perf_counter()
        optimizer.zero_grad()
        gpt.loss_of(model(common.my_part(tokens)), common.my_part(targets)).backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    return statistics.median(times[2:]) * 1e6


def turns_here(rounds: int, steps: int, folder: str) -> list[dict[str, float]]:
    """In a rank: µs per step of each kind, in each round."""
    import torch
    import torch.distributed as dist

    import medley.torch  # noqa: F401  registers the backend

    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), size, rank == 0)
    out = []
    for number in range(rounds):
        order = random.Random(number).sample(KINDS, len(KINDS))
        taken = {}
        for kind in order:
            set_recording(kind, f"{folder}/{number}")
            dist.init_process_group("medley", store=dist.PrefixStore(f"{number}-{kind}", store), rank=rank, world_size=size)
            taken[kind] = train(steps)
            dist.barrier()
            dist.destroy_process_group()
        out.append(taken)
    store.set(f"done-{rank}", "1")
    store.wait([f"done-{r}" for r in range(size)])   # rank 0 is the store
    return out


def median_interval(values: list[float]) -> tuple[float, float]:
    """95 %, by order statistics."""
    values, reach = sorted(values), 0.98 * math.sqrt(len(values))
    middle = (len(values) - 1) / 2
    return values[max(0, math.floor(middle - reach))], values[min(len(values) - 1, math.ceil(middle + reach))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=8, help="that count, in each turn")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        of_ranks = ranks.run(arguments.n, turns_here, arguments.rounds, arguments.steps, folder, timeout=600)
    slowest = [{kind: max(rank[i][kind] for rank in of_ranks) for kind in KINDS} for i in range(arguments.rounds)]
    rows = []
    for kind in KINDS:
        ratios = [taken[kind] / taken["off"] for taken in slowest]
        low, high = median_interval(ratios)
        rows.append({"recording": kind, "step_us": statistics.median(taken[kind] for taken in slowest),
                     "against_off": statistics.median(ratios), "low": low, "high": high, "rounds": len(ratios)})
    print(f"{'recording':10} {'step µs':>9} {'against off':>12}  95 % interval")
    for row in rows:
        print(f"{row['recording']:10} {row['step_us']:9.0f} {row['against_off']:12.4f}  {row['low']:.4f} to {row['high']:.4f}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
