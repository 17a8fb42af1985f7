"""Step times of the training examples: medley against gloo, by turns in one run, so that whatever else the machine does
meets both.

    python bench/torch/steps.py [-n 2] [--rounds 5] [--steps 30] [--json FILE] [EXAMPLE…]

A row is one example: the median of each backend's step times over the rounds, and the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch"
NAMES = ["ddp_gpt", "zero1_gpt", "fsdp2_gpt", "tp_gpt", "pp_gpt", "parallel_3d", "moe_gpt", "dlrm"]


def step_us(name: str, backend: str, ranks: int, steps: int) -> float:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--rdzv-backend", "c10d",
               "--rdzv-endpoint", "127.0.0.1:0", str(EXAMPLES / f"{name}.py"), "--backend", backend, "--steps", str(steps), "--time"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=EXAMPLES)
    if done.returncode != 0:
        sys.exit(f"{name} with {backend} failed:\n{done.stdout}{done.stderr[-3000:]}")
    return float(next(line for line in done.stdout.splitlines() if line.startswith("step_us")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=NAMES)
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    print(f"{'example':12} {'gloo us':>10} {'medley us':>10} {'gloo/medley':>12}")
    for name in arguments.examples:
        times: dict[str, list[float]] = {"gloo": [], "medley": []}
        for _ in range(arguments.rounds):
            for backend in times:
                times[backend].append(step_us(name, backend, arguments.n, arguments.steps))
        ratio = statistics.median(a / b for a, b in zip(times["gloo"], times["medley"]))
        gloo, ours = (statistics.median(times[backend]) for backend in ("gloo", "medley"))
        rows.append({"example": name, "ranks": arguments.n, "gloo_us": gloo, "medley_us": ours, "ratio": ratio, "rounds": times})
        print(f"{name:12} {gloo:10.0f} {ours:10.0f} {ratio:12.2f}", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
