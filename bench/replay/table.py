#!/usr/bin/env python3
"""Prints the results of bench/replay/measure.sh as the tables of docs/performance.md: table.py OUT"""
import json
import os
import sys

SETTINGS = (("host2", "2 ranks"), ("host4", "4 ranks"), ("hosts", "2 hosts × 2 ranks"))
STEPS = (("gpt", "dense GPT"), ("moe", "MoE-GPT"), ("dlrm", "DLRM"))
BOUND = 0.15


def off(predicted, took):
    return f"{100 * (predicted / took - 1):+.0f} %" if predicted else "–"


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: table.py OUT, the folder that measure.sh wrote")
    print("| ranks | step | over | ms | by its parts | off by | by the table | off by | auto's gain |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    within = {"calibrated_us": [0, 0], "predicted_us": [0, 0]}
    for setting, ranks in SETTINGS:
        for step, name in STEPS:
            path = os.path.join(sys.argv[1], f"{setting}.{step}.json")
            if not os.path.exists(path):
                continue
            found = json.load(open(path))
            times = found["step_us"]
            best = min((us for backend, us in times.items() if backend != "auto"), default=None)
            for backend, took in sorted(times.items(), key=lambda item: (item[0] == "auto", item[1])):
                cells = [ranks, name, backend, f"{took / 1e3:.2f}"]
                for key, counts in within.items():
                    predicted = found[key].get(backend)
                    cells += [f"{predicted / 1e3:.2f}" if predicted else "–", off(predicted, took)]
                    if predicted:
                        counts[0] += abs(predicted / took - 1) <= BOUND
                        counts[1] += 1
                cells.append(f"{best / took:.2f}×" if backend == "auto" and best else "")
                print("| " + " | ".join(cells) + " |")
                ranks = name = ""
    for key, what in (("calibrated_us", "by their parts"), ("predicted_us", "by the table")):
        print(f"\n{within[key][0]} of {within[key][1]} predictions {what} are within 15 %.", end="")
    print()


main()
