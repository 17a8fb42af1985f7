"""Step times of the training examples: medley and gloo interleaved in one run, so that noise affects both.

    python bench/torch/steps.py [-n 2] [--seconds 240] [--steps 20] [--json FILE] [EXAMPLE…]

Ranks are forked from a server that has imported torch, so that a run is short and there are many rounds. A row is one
example: the median of each backend's step times over the rounds, the median of the rounds' ratios with its 95 % interval,
and a rank's processor time per step, which shows the cost of waiting. A sentence for each example says what that shows.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import queue
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


def run_once(backend: str, arguments: argparse.Namespace, name: str, patience: float) -> tuple[float, float] | None:
    """run_here() on rank 0. None where torch's gloo hangs, as one run of fifty does (tests/python/ranks.py); Medley must not."""
    try:
        return ranks.run(arguments.n, run_here, name, backend, arguments.steps, timeout=patience if backend == "gloo" else 120)[0]
    except queue.Empty:
        if backend != "gloo":
            raise
        print(f"{name}: torch's gloo did not end within {patience:.0f} s, which happens now and then; this round does not count",
              file=sys.stderr)
        return None


def rounds(arguments: argparse.Namespace, name: str, until: float) -> dict[str, list[tuple[float, float]]]:
    """Both backends' results, a pair for each round that fits into the time."""
    took: dict[str, list[tuple[float, float]]] = {"gloo": [], "medley": []}
    longest = 0.0
    while time.monotonic() + longest < until:
        begun = time.monotonic()
        order = sorted(took, reverse=len(took["gloo"]) % 2 == 1)   # it alternates
        patience = max(10, 4 * longest) if longest else 30
        both = {backend: result for backend in order if (result := run_once(backend, arguments, name, patience))}
        if len(both) < 2:
            continue
        longest = max(longest, time.monotonic() - begun)
        for backend, result in both.items():
            took[backend].append(result)
    return took


def interval_of_median(values: list[float]) -> tuple[float, float] | None:
    """Between two order statistics, which hold the median of any distribution with 95 %. None: fewer than 6 values cannot."""
    ordered, count = sorted(values), len(values)
    outside, at = 0.0, 0
    while (outside := outside + 2 * math.comb(count, at) / 2 ** count) <= 0.05:
        at += 1
    return (ordered[at - 1], ordered[-at]) if at else None


def middle_half(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def conclusion(name: str, ratios: list[float], seconds: float) -> str:
    """What the ratios of gloo's to Medley's times show; seconds: that they took, with all examples."""
    if not ratios:
        return f"{name}: no round ended in this time; give --seconds {more_seconds(seconds, 0)}"
    interval = interval_of_median(ratios)
    if not interval:
        return (f"{name}: too few rounds ({len(ratios)}) to tell: gloo's time over medley's was {min(ratios):.2f} to {max(ratios):.2f}; "
                f"give --seconds {more_seconds(seconds, len(ratios))}")
    low, high = interval
    found = f"(95 % interval {low:.2f} to {high:.2f}, {len(ratios)} rounds)"
    if low <= 1 <= high:
        return f"{name}: no difference shows: medley is {statistics.median(ratios):.2f} times as fast as gloo {found}"
    return f"{name}: medley is {statistics.median(ratios):.2f} times as fast as gloo {found}"


def more_seconds(seconds: float, done: int) -> int:
    """For about 20 rounds, in whole minutes; at least five."""
    return max(300, 60 * math.ceil(20 * seconds / max(1, done) / 60))


def row_of(name: str, size: int, took: dict[str, list[tuple[float, float]]], ratios: list[float]) -> dict:
    median = {backend: [statistics.median(column) for column in zip(*values)] for backend, values in took.items()}
    return {"example": name, "ranks": size, "gloo_us": median["gloo"][0], "medley_us": median["medley"][0],
            "ratio": statistics.median(ratios), "middle_half": middle_half(ratios), "interval": interval_of_median(ratios),
            "rounds": len(ratios), "cpu_us": {backend: both[1] for backend, both in median.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", nargs="*", default=NAMES)
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--seconds", type=float, default=240, help="for all together; the last round may end later")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows, conclusions = [], []
    end = time.monotonic() + arguments.seconds
    print(f"{'example':12} {'gloo us':>9} {'medley us':>10} {'gloo/medley':>12} {'95 % interval':>14} {'rounds':>7} {'cpu us: gloo':>13} {'medley':>8}")
    for place, name in enumerate(arguments.examples):
        took = rounds(arguments, name, time.monotonic() + (end - time.monotonic()) / (len(arguments.examples) - place))
        ratios = [a[0] / b[0] for a, b in zip(took["gloo"], took["medley"])]
        conclusions.append(conclusion(name, ratios, arguments.seconds))
        if not ratios:
            continue
        row = row_of(name, arguments.n, took, ratios)
        rows.append(row)
        interval = "{:.2f}-{:.2f}".format(*row["interval"]) if row["interval"] else "too few"
        print(f"{name:12} {row['gloo_us']:9.0f} {row['medley_us']:10.0f} {row['ratio']:12.2f} {interval:>14} "
              f"{row['rounds']:7} {row['cpu_us']['gloo']:13.0f} {row['cpu_us']['medley']:8.0f}", flush=True)
    print("\n" + "\n".join(conclusions))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rows": rows}, indent=1))


if __name__ == "__main__":
    main()
