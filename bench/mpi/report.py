"""The output of a comparison: a JSON file for programs and a Markdown page for docs/performance.md.

Used by bench/mpi/compare.
"""
import json
import os
import platform
from datetime import datetime, timezone
from statistics import median

import ratios


def spelled(size):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def time_spelled(us):
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 100 else f"{us:.0f}"


def interval_spelled(of):
    return "too few runs" if of["low"] is None else f"{of['low']:.2f}–{of['high']:.2f}"


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"processor": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": os.getloadavg()[0]}


def summary(cells, comparison):
    """Everything as one dictionary, including the repetitions, for other statistics."""
    rows = []
    floor = comparison.floor
    for cell in cells:
        low, high = cell.interval()
        rows.append({"op": cell.op, "bytes": cell.size, **{f"{name}_us": us for name, us in cell.medians().items()},
                     "better": cell.better(), "ratio": cell.ratio(), "low": low, "high": high,
                     "slower": cell.slower(), "repetitions": cell.repetitions})
    result = {"ranks": comparison.options.ranks, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "machine": machine(),
              "gauge_us": comparison.readings, "discarded": comparison.discarded, "unsettled": comparison.unsettled,
              "candidates": {c.name: c.about for c in comparison.everyone},
              "rows": rows,
              "means": {name: dict(zip(("ratio", "low", "high"), values)) for name, values in ratios.means(cells).items()}}
    if floor:
        difference, low, high = ratios.floor_difference(floor)
        result["floor"] = {"flags_us": median(row["flags"] for row in floor),
                           "medley_us": median(row["medley"] for row in floor),
                           "difference_us": difference, "low": low, "high": high}
    return result


def markdown(report):
    names = [name for name in report["candidates"] if name != "medley"]
    host = report["machine"]
    lines = [f"### {report['ranks']} ranks, {host['processor']}, {host['cores']} cores", "",
             f"{report['date']}, kernel {host['kernel']}. Times are medians of the slowest rank over alternating "
             "repetitions; the ratio is the median over repetitions of the better MPI's time over Medley's.", ""]
    for name, about in report["candidates"].items():
        carried = f"; transports {about['transports']}" if "transports" in about else ""
        lines.append(f"- {name}: {about['version']}; `{about['command']}`{carried}")
    gauge = sorted(report["gauge_us"])
    lines += ["", f"A bare flag exchange between two cores, read with each of {len(gauge)} repetitions: {gauge[0]:.2f} to "
              f"{gauge[-1]:.2f} µs, median {median(gauge):.2f}. {report['discarded']} repetitions were made again because it "
              f"changed or other programs took the cores; {report['unsettled']} were kept although they did.", "", "| operation | geometric mean | 95 % interval |", "|---|--:|--:|"]
    for name, mean in report["means"].items():
        lines.append(f"| {name} | {mean['ratio']:.2f}× | {interval_spelled(mean)} |")
    if "floor" in report:
        floor = report["floor"]
        lines += ["", f"4-byte all_reduce: {floor['medley_us']:.3f} µs; a bare flag exchange beside it: "
                  f"{floor['flags_us']:.3f} µs; difference {floor['difference_us']:+.3f} µs "
                  f"({floor['low']:+.3f} to {floor['high']:+.3f})."]
    head = " | ".join(f"{name} µs" for name in names)
    lines += ["", f"| operation | size | medley µs | {head} | ratio | 95 % interval |",
              "|---|--:|--:|" + "--:|" * len(names) + "--:|--:|"]
    for row in report["rows"]:
        times = " | ".join(time_spelled(row[f"{name}_us"]) for name in ["medley", *names])
        mark = " **slower**" if row["slower"] else ""
        size = "" if row["op"] == "barrier" else spelled(row["bytes"])
        lines.append(f"| {row['op']} | {size} | {times} | {row['ratio']:.2f}×{mark} | {interval_spelled(row)} |")
    return "\n".join(lines) + "\n"


def write(report, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
