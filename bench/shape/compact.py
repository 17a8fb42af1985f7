#!/usr/bin/env python3
"""Joins sweeps of `medley shape bench` into the compact CSV that ships: python3 compact.py DATE sweep.csv... > h200_sweep.csv

Keeps rows with little noise: near the boost clock (for sweeps that did not record it: under 20 us, where power does not
throttle, or over 1.2 TFLOP, which always throttle) and, under 25 us, with a deviation below 1.2 %: above that the host was
too slow to keep the GPU busy. The later sweep wins; a product measured twice in one sweep keeps the mean.
"""
import csv
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
            us, deviation, clock = float(row["us"]), float(row["mad_us"]), float(row.get("clock_mhz") or 0)
            long = 2 * int(row["m"]) * int(row["n"]) * int(row["k"]) * int(row["batch"]) > 1.2e12
            if us < 25 and deviation > 0.012 * us or not (clock > 1900 or us < 20 or long):
                continue
            again = times[key][1] if key in times and times[key][0] == path else []
            times[key] = path, again + [us]
            names[key] = row["name"][0] if len(row["name"]) <= 3 else "f"  # long names are the paper's figures
    sys.stdout.write(f"# date {date}\n" + "".join(comments))
    print("m,n,k,batch,layout,type,us,name")
    for key in sorted(times, key=lambda k: (k[4], k[5], *map(int, k[:4]))):
        measured = times[key][1]
        print(*key, f"{sum(measured) / len(measured):.5g}", names[key], sep=",")


if __name__ == "__main__":
    main()
