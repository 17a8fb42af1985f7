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


def steps(folder):
    """The results of STEPS=1: a row for each setting and step, and whether auto ever loses."""
    found = []
    for path in sorted(glob.glob(os.path.join(folder, "*.mixes.json"))):
        setting, _, mix = os.path.basename(path)[:-len(".mixes.json")].rpartition(".")
        routes = os.path.join(folder, f"{setting}.{mix}.routes.json")
        if not setting or not os.path.exists(routes):
            continue
        table, rows = json.load(open(routes)), json.load(open(path))["mixes"]
        auto = next(row for row in rows if row["backend"] == "auto")
        libraries = [row for row in rows if row["backend"] != "auto" and not set(row["backend"]) & set("+|")]
        found.append((setting, mix, table, auto, min(libraries, key=lambda row: row["median_us"])))
    if not found:
        return
    print("\n| setting | step | auto is | step over auto, predicted | measured | best library | auto against it | 95 % interval |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for setting, mix, table, auto, best in found:
        tuned = table["tuned_for"]
        chosen = (tuned["library"] or "a mix") + ("" if tuned["settled"] else f", not settled (needs {tuned.get('needed_s', '?')} s)")
        print(f"| {setting} | {mix} | {chosen} | {table['auto_us']:.0f} µs | {auto['median_us']:.0f} µs | {best['median_us']:.0f} µs, {best['backend']} | "
              f"{auto['speedup']:.2f}× | {auto['speedup_low']:.2f} to {auto['speedup_high']:.2f} |")
    below = sum(auto["speedup_high"] < 1 for _, _, _, auto, _ in found)
    print(f"\n{sum(auto['speedup'] >= 0.97 for _, _, _, auto, _ in found)} of {len(found)} at least 0.97×; {below} intervals wholly below 1; "
          f"predicted/measured {min(t['auto_us'] / a['median_us'] for _, _, t, a, _ in found):.2f} to "
          f"{max(t['auto_us'] / a['median_us'] for _, _, t, a, _ in found):.2f}.")


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit("usage: table.py OUT, the folder that measure.sh wrote")
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.csv"))):
        name = os.path.basename(path)[:-4]
        print(f"\n### {name}\n")
        routes(path)
        print()
        mixes(os.path.join(sys.argv[1], f"{name}.mixes.json"))
    steps(sys.argv[1])


main()
