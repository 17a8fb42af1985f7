"""The tables of bench/torch/hosts: python3 bench/torch/hosts_table.py OUT [--csv FILE]

A gain is the best single library's step over auto's, formed within each round; its interval is the 95 % interval of the median over rounds
(the range of all where there are fewer than six). Communication is the share of the best library's step in which no rank computes: what is left of it
after the computation of the recorded step.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import pathlib
import statistics
import sys

PAPER = {"moe_gpt": 31, "dlrm": 25, "tp_dp_gpt": 20}   # MCR-DL's gains on clusters, %


def interval(values: list[float]) -> tuple[float, float]:
    """Order statistics that contain the median with at least 95 %: the sign test."""
    ordered, n = sorted(values), len(values)
    k = 0
    while n >= 6 and 2 * sum(math.comb(n, i) for i in range(k + 2)) / 2**n <= 0.05:
        k += 1
    low = k if n >= 6 else 0
    return ordered[low], ordered[n - 1 - low]


def rows(folder: pathlib.Path):
    for path in sorted(folder.glob("*x*.*.json")):
        setting, example = path.name.split(".")[:2]
        if path.name != f"{setting}.{example}.json":
            continue
        result = json.loads(path.read_text())
        step = json.loads((folder / f"{setting}.{example}.step.json").read_text())
        computed = max(sum(entry.get("us", 0) for entry in rank["entries"]) for rank in step["ranks"])
        medians = {name: statistics.median(values) for name, values in result["step_us"].items()}
        best = min((name for name in medians if name != "auto"), key=medians.get)
        ratios = [a / b for a, b in zip(result["step_us"][best], result["step_us"]["auto"])]
        losses = list(result["losses"].values())
        apart = max(abs(a - b) / abs(a) for other in losses[1:] for a, b in zip(losses[0], other))
        yield {"setting": setting, "example": example, "medians": medians, "best": best, "samples": result["samples"],
               "gain": statistics.median(ratios), "interval": interval(ratios), "rounds": len(ratios), "apart": apart,
               "communication": max(0, 1 - computed / medians[best])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--csv", type=pathlib.Path, help="default: FOLDER/results.csv")
    arguments = parser.parse_args()
    found = list(rows(arguments.folder))
    with open(arguments.csv or arguments.folder / "results.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["setting", "example", "candidate", "step_us", "samples_per_s"])
        for row in found:
            for name, us in row["medians"].items():
                writer.writerow([row["setting"], row["example"], name, f"{us:.0f}", f"{1e6 * row['samples'] / us:.1f}"])
    print("| hosts x ranks | example | samples/s: auto | each library | communication | auto against the best | paper | losses differ by |")
    print("|---|---|--:|---|--:|--:|--:|--:|")
    for row in found:
        rate = {name: 1e6 * row["samples"] / us for name, us in row["medians"].items()}
        others = ", ".join(f"{name} {value:.1f}" for name, value in rate.items() if name != "auto")
        low, high = row["interval"]
        print(f"| {row['setting']} | {row['example']} | {rate['auto']:.1f} | {others} | {100 * row['communication']:.0f} % | "
              f"{row['gain']:.2f}× ({low:.2f} to {high:.2f}, {row['rounds']} rounds, {row['best']}) | {PAPER[row['example']]} % | {row['apart']:.1e} |")
    if any(row["apart"] > 1e-3 for row in found):
        sys.exit("hosts_table: the losses of the candidates differ by more than the rounding of sums")


if __name__ == "__main__":
    main()
