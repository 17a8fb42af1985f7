"""Step times of the training examples: medley and gloo interleaved in one run, so that noise affects both.

    python bench/torch/steps.py [-n 2] [--seconds 240] [--steps 20] [--json FILE] [EXAMPLE…]

Ranks are forked from a server that has imported torch, so that a run is short and there are many rounds. A row is one
example: the median of each backend's step times over the rounds, the median and interquartile range of the rounds' ratios,
and a rank's processor time per step, which shows the cost of waiting.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "torch"
NAMES = ["moe_gpt", "dlrm", "ddp_gpt", "zero1_gpt", "fsdp2_gpt", "tp_gpt", "pp_gpt", "parallel_3d"]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import ranks  # noqa: E402


def run_here(name: str, backend: str, steps: int) -> tuple[float, float]:
    """In a rank: the median step in µs, and processor time per step in µs."""
    os.chdir(EXAMPLES)
    sys.path.insert(0, str(EXAMPLES))
    sys.argv = [f"{name}.py", "--backend", backend, "--steps", str(steps), "--time", "--unchecked"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_path(f"{name}.py", run_name="__main__")
    import common
    used = common.Clock.processor_time_per_step * 1e6
    line = next((line for line in said.getvalue().splitlines() if line.startswith("step_us")), "step_us 0")
    return float(line.split()[1]), used


def middle_half(values: list[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=NAMES)
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--seconds", type=float, default=240, help="for all together")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    end = time.monotonic() + arguments.seconds
    print(f"{'example':12} {'gloo us':>9} {'medley us':>10} {'gloo/medley':>12} {'middle half':>12} {'rounds':>7} {'cpu us: gloo':>13} {'medley':>8}")
    for place, name in enumerate(arguments.examples):
        until = time.monotonic() + (end - time.monotonic()) / (len(arguments.examples) - place)
        took: dict[str, list[tuple[float, float]]] = {"gloo": [], "medley": []}
        while len(took["gloo"]) < 3 or time.monotonic() < until:
            for backend in sorted(took, reverse=len(took["gloo"]) % 2 == 1):   # the order alternates
                took[backend].append(ranks.run_over(backend, arguments.n, run_here, name, backend, arguments.steps)[0])
        ratios = [a[0] / b[0] for a, b in zip(took["gloo"], took["medley"])]
        low, high = middle_half(ratios)
        median = {backend: [statistics.median(column) for column in zip(*values)] for backend, values in took.items()}
        rows.append({"example": name, "ranks": arguments.n, "gloo_us": median["gloo"][0], "medley_us": median["medley"][0],
                     "ratio": statistics.median(ratios), "middle_half": [low, high], "rounds": len(ratios),
                     "cpu_us": {backend: both[1] for backend, both in median.items()}})
        print(f"{name:12} {median['gloo'][0]:9.0f} {median['medley'][0]:10.0f} {statistics.median(ratios):12.2f} {low:6.2f}-{high:4.2f} "
              f"{len(ratios):7} {median['gloo'][1]:13.0f} {median['medley'][1]:8.0f}", flush=True)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
