"""Training examples on CUDA tensors and the host's time for a launch: medley and torch's own nccl, interleaved in one run.

    mpirun -n 2 python bench/torch/cuda_steps.py [--seconds 120] [--steps 30] [--json FILE] [EXAMPLE…]

Every rank is one process for the whole run. A round is torch's nccl, medley over nccl, one of the others, medley over nccl
and torch's nccl again. A row is one example with one backend: the median over its runs of the median step, the median and
interquartile range of the ratios to torch's nccl in the same half of the round, and whether the losses equal those of nccl
bit for bit, or else by how much they differ. Ranks that share a GPU (tests/gpu/torch) use sockets: their times say nothing
about NCCL between GPUs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import pathlib
import runpy
import statistics
import sys
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch"
#: the name in the table, torch's backend, and Medley's rules
CARRIERS = {
    "torch nccl": ("nccl", ""),
    "medley, nccl": ("medley", "*=nccl"),
    "medley, mpi": ("medley", "*=mpi"),
    "medley, shm": ("medley", "*=shm"),
    "medley, mixed": ("medley", "all_to_all=mpi; all_to_allv=mpi; *=nccl"),   # as in the MCR-DL paper
}
PAIR, OTHERS = list(CARRIERS)[:2], list(CARRIERS)[2:]
SIZES = {"4 B": 1, "1 MiB": 1 << 18}


def step_of(name: str, carrier: str, steps: int) -> tuple[float, list[float]]:
    """In every rank: the median step in µs, as measured on rank 0, and the losses."""
    backend, rules = CARRIERS[carrier]
    os.environ["MEDLEY_RULES"] = rules
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)   # the store of the previous round may still be there
    sys.argv = [f"{name}.py", "--backend", backend, "--device", "cuda", "--steps", str(steps), "--time", "--unchecked"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_path(f"{name}.py", run_name="__main__")
    lines = dict(line.split(None, 1) for line in said.getvalue().splitlines() if line.startswith(("step_us", "bits")))
    return float(lines.get("step_us", 0)), [float.fromhex(loss) for loss in lines.get("bits", "").split()]


def host_times(rounds: int, calls: int = 50) -> dict[str, dict[str, list[float]]]:
    """Host time in µs for an async all_reduce and for waiting for it, by size and backend, one number per round."""
    import torch
    import torch.distributed as dist
    os.environ["MEDLEY_RULES"] = "*=nccl"
    dist.init_process_group("medley")
    groups = {"torch nccl": dist.new_group(backend="nccl"), "medley, nccl": dist.group.WORLD}
    times: dict[str, dict[str, list[float]]] = {}
    for turn in range(rounds + 1):
        for size, count in SIZES.items():
            tensor = torch.ones(count, device="cuda")
            for carrier in sorted(groups, reverse=turn % 2 == 1):
                launching = waiting = 0.0
                torch.cuda.synchronize()
                dist.barrier()
                for _ in range(calls):
                    began = time.perf_counter()
                    work = dist.all_reduce(tensor, group=groups[carrier], async_op=True)
                    launched = time.perf_counter()
                    work.wait()
                    waiting += time.perf_counter() - launched
                    launching += launched - began
                if turn > 0:   # the first round connects
                    of_size = times.setdefault(f"all_reduce {size}", {})
                    of_size.setdefault(f"{carrier}: launch", []).append(launching / calls * 1e6)
                    of_size.setdefault(f"{carrier}: wait", []).append(waiting / calls * 1e6)
                torch.cuda.synchronize()
    dist.destroy_process_group()
    return times


def middle_half(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def go_on(store, wished: bool, turn: int) -> bool:
    """Rank 0 decides, so that all ranks run the same number of rounds."""
    if os.environ["RANK"] == "0":
        store.set(f"turn{turn}", "go" if wished else "stop")
    return store.get(f"turn{turn}") == b"go"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=["ddp_gpt", "moe_gpt"])
    parser.add_argument("--seconds", type=float, default=120, help="for all together")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.chdir(EXAMPLES)
    sys.path.insert(0, str(EXAMPLES))
    import medley.torch  # noqa: F401  it sets what torch looks for under mpirun
    import torch
    import torch.distributed as dist
    os.environ.setdefault("NCCL_HOSTID", f"rank{os.environ['RANK']}")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    first, ranks = os.environ["RANK"] == "0", int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    # A port per round, below the ephemeral ports: NCCL's sockets take many of those.
    os.environ["MASTER_PORT"] = str(12000 + int(os.environ["MASTER_PORT"]) % 16000)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) - 1, ranks, first)
    say = print if first else lambda *words, **how: None
    say(f"{torch.cuda.get_device_name()}, {ranks} ranks, torch {torch.__version__}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}, "
        f"{time.strftime('%Y-%m-%d')}")
    found: dict = {"ranks": ranks, "gpu": torch.cuda.get_device_name(), "launch": {}, "rows": []}

    turn = 0
    for size, columns in host_times(rounds=20).items():
        found["launch"][size] = {name: statistics.median(values) for name, values in columns.items()}
        say(f"{size}: " + ", ".join(f"{name} {statistics.median(values):.1f} us" for name, values in columns.items()), flush=True)
    end = time.monotonic() + arguments.seconds
    say(f"{'example':10} {'carried by':14} {'step us':>8} {'to nccl':>8} {'middle half':>12} {'runs':>6}  losses")
    for place, name in enumerate(arguments.examples):
        until = time.monotonic() + (end - time.monotonic()) / (len(arguments.examples) - place)
        took: dict[str, list[float]] = {carrier: [] for carrier in CARRIERS}
        ratio: dict[str, list[float]] = {carrier: [] for carrier in CARRIERS}
        losses: dict[str, list[float]] = {}
        while go_on(store, turn % len(OTHERS) != 0 or not took["torch nccl"] or time.monotonic() < until, turn):
            this_turn = [*PAIR, OTHERS[turn % len(OTHERS)], *reversed(PAIR)]
            steps = []
            for carrier in this_turn:
                step, losses[carrier] = step_of(name, carrier, arguments.steps)
                took[carrier].append(step)
                steps.append(step)
            if first:
                before, after = steps[0], steps[-1]
                ratio[this_turn[1]].append(steps[1] / before)
                ratio[this_turn[2]].append(steps[2] * 2 / (before + after))
                ratio[this_turn[3]].append(steps[3] / after)
                ratio["torch nccl"].append(after / before)
            turn += 1
        turn += len(OTHERS) - turn % len(OTHERS)   # every example starts with the first of the others, under new names
        for carrier, steps in took.items() if first else ():
            ratios = ratio[carrier]
            low, high = middle_half(ratios)
            apart = max(abs(a - b) for a, b in zip(losses[carrier], losses["torch nccl"], strict=True))
            found["rows"].append({"example": name, "carrier": carrier, "step_us": statistics.median(steps), "ratio": statistics.median(ratios),
                                  "middle_half": [low, high], "runs": len(steps), "losses_apart": apart})
            say(f"{name:10} {carrier:14} {statistics.median(steps):8.0f} {statistics.median(ratios):8.3f} {low:6.3f}-{high:5.3f} "
                f"{len(steps):6}  {'the same bits' if apart == 0 else f'{apart:.1e} apart'}", flush=True)
    if arguments.json and first:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
