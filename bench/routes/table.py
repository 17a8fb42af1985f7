#!/usr/bin/env python3
"""Prints the results of bench/routes/measure.sh as the tables of docs/performance.md: table.py OUT"""
import csv
import glob
import json
import os
import sys


def cells(path):
    """(op, counts, bytes) -> {route: median µs}"""
    found = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            cell = found.setdefault((row["op"], row["counts"], int(row["bytes"])), {})
            route = "auto" if row["backend"] == "auto" else f"{row['backend']}/{row['algorithm']}"
            cell[route] = float(row["median_us"])
    return found


def size(count):
    for unit in ("", "K", "M"):
        if count < 1024:
            return f"{count}{unit}"
        count //= 1024
    return f"{count}G"


def routes(path):
    found = cells(path)
    sizes = sorted({bytes for _, _, bytes in found if bytes})
    print("| auto / best single route | " + " | ".join(size(s) for s in sizes) + " |")
    print("|---|" + "--:|" * len(sizes))
    near = 0
    for op in dict.fromkeys((op, counts) for op, counts, _ in found):
        line = []
        for s in sizes:
            cell = found.get((*op, s)) or (found.get((*op, 0)) if s == sizes[0] else None)
            if not cell or "auto" not in cell or len(cell) < 2:
                line.append("")
                continue
            best, route = min((us, route) for route, us in cell.items() if route != "auto")
            line.append(f"{cell['auto'] / best:.2f} {route}")
        print(f"| {' '.join(op).strip()} | " + " | ".join(line) + " |")
    whole = [c for c in found.values() if "auto" in c and len(c) > 1]
    for cell in whole:
        best = min(us for route, us in cell.items() if route != "auto")
        near += cell["auto"] <= max(best * 1.05, best + 0.2)
    print(f"\n{near} of {len(whole)} cells within 5 % or 0.2 µs.")


def mixes(path):
    rows = json.load(open(path))["mixes"]
    names = list(dict.fromkeys(row["backend"] for row in rows))
    pairs = any("+" in name for name in names)
    print("| step, µs | " + " | ".join(names) + " | auto against the best library |" + (" … of two |" if pairs else ""))
    print("|---|" + "--:|" * (len(names) + 1 + pairs))
    for mix in dict.fromkeys(row["mix"] for row in rows):
        times = {row["backend"]: row["median_us"] for row in rows if row["mix"] == mix}

        def gain(of_two):
            best = min((us for name, us in times.items() if name != "auto" and ("+" in name) == of_two), default=None)
            return f" {best / times['auto']:.2f}× |" if best and "auto" in times else " |"

        print(f"| {mix} | " + " | ".join(f"{times[n]:.0f}" if n in times else "" for n in names) + " |" + gain(False) + (gain(True) if pairs else ""))


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: table.py OUT, the folder that measure.sh wrote")
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.csv"))):
        name = os.path.basename(path)[:-4]
        print(f"\n### {name}\n")
        routes(path)
        print()
        mixes(os.path.join(sys.argv[1], f"{name}.mixes.json"))


main()
