#!/usr/bin/env python3
"""Joins sweeps of `medley shape bench` into the compact CSV that ships: python3 compact.py DATE sweep.csv... > h200_sweep.csv

A product measured in several sweeps keeps the median of its times, the later sweep's when there are two.
"""
import csv
import statistics
import sys


def main():
    date, paths = sys.argv[1], sys.argv[2:]
    times, names, comments = {}, {}, []
    for path in paths:
        with open(path, newline="") as file:
            lines = list(file)
        comments += [line for line in lines if line.startswith("# gpu") and line not in comments]
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            key = tuple(row[column] for column in ("m", "n", "k", "batch", "layout", "type"))
            times.setdefault(key, []).append(float(row["us"]))
            names[key] = (row.get("name") or "-")[0]
    sys.stdout.write(f"# date {date}\n" + "".join(comments))
    print("m,n,k,batch,layout,type,us,name")
    for key in sorted(times, key=lambda k: (k[4], k[5], *map(int, k[:4]))):
        print(*key, f"{times[key][-1] if len(times[key]) < 3 else statistics.median(times[key]):.5g}", names[key], sep=",")


if __name__ == "__main__":
    main()
