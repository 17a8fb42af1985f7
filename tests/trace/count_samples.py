#!/usr/bin/env python3
"""Counts the collectives of other people's sample traces by itself and holds `medley trace` against it:

    tests/trace/count_samples.py build/release/bin/medley FOLDER-OR-FILE…

A file is right when medley's numbers of operations and bytes are those counted here, or when it refuses a file that holds
none. The samples (HolisticTraceAnalysis tests/data, mlcommons/chakra tests/data) are not part of the repository."""

import collections
import csv
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

SIZES = {"Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Long": 8, "Int": 4, "Byte": 1, "Char": 1, "Bool": 1, "Short": 2}
OPS = [("reducescatter", "reduce_scatter"), ("allreduce", "all_reduce"), ("allgather", "all_gather"), ("alltoall", "all_to_all"),
       ("broadcast", "broadcast"), ("barrier", "barrier"), ("gather", "gather"), ("scatter", "scatter"), ("reduce", "reduce"),
       ("send", "send"), ("recv", "recv")]


def op_of(name):
    bare = "".join(c for c in name.lower() if c.isalpha())
    return next((op for part, op in OPS if part in bare), None)


def counted(path):
    """Operations and bytes by kind; None: it is no Chrome trace."""
    raw = path.read_bytes()
    try:
        root = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (ValueError, OSError):
        return None
    events = root.get("traceEvents") if isinstance(root, dict) else None
    if events is None:
        return None
    events = [e for e in events if isinstance(e, dict) and "ts" in e]
    counts, sizes = collections.Counter(), collections.Counter()
    described = [e for e in events if "record_param_comms" in str(e.get("name")) and op_of(e.get("args", {}).get("Collective name", ""))]
    for e in described:
        a = e["args"]
        op, given, taken, n = op_of(a["Collective name"]), a["In msg nelems"], a["Out msg nelems"], a["Group size"]
        full = {"all_gather": taken or given * n, "reduce_scatter": given or taken * n, "barrier": 0}.get(op, max(given, taken))
        counts[op] += 1
        sizes[op] += full * SIZES[a["dtype"]]

    def inside(e):
        return any(d["tid"] == e["tid"] and d["ts"] <= e["ts"] and e["ts"] + e.get("dur", 0) <= d["ts"] + d["dur"] + 1 for d in described)

    annotations = [e for e in events if str(e.get("name")).startswith("nccl:") and e.get("cat") == "user_annotation"]
    for e in annotations:
        if not inside(e):
            counts[op_of(e["name"])] += 1
    issues = described + annotations
    ids = {e["args"].get("External id") for e in issues if "args" in e}
    launches = {e["args"].get("External id"): e for e in events if "Launch" in str(e.get("name")) and "args" in e}
    for e in events:
        if e.get("cat") != "kernel" or "nccl" not in str(e.get("name")):
            continue
        external = e.get("args", {}).get("External id")
        launch = launches.get(external)
        tied = external in ids or (launch and any(i["tid"] == launch["tid"] and i["ts"] <= launch["ts"] <= i["ts"] + i.get("dur", 0) + 1
                                                  for i in issues))
        op = op_of(e["name"])
        if not tied and op not in (None, "send", "recv"):
            counts[op] += 1
    return counts, sizes


def read(medley, path):
    with tempfile.NamedTemporaryFile(suffix=".csv") as table:
        done = subprocess.run([medley, "trace", path, "--csv", table.name], capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip()
        counts, sizes = collections.Counter(), collections.Counter()
        with open(table.name) as file:
            for row in csv.DictReader(file):
                op = row["op"].replace("all_to_allv", "all_to_all")
                counts[op] += 1
                sizes[op] += int(row["bytes"] or 0)
        return counts, sizes


def main():
    medley, *paths = sys.argv[1:]
    files = [f for p in map(pathlib.Path, paths) for f in (sorted(p.rglob("*")) if p.is_dir() else [p]) if f.is_file()]
    wrong = 0
    for path in files:
        mine, theirs = counted(path), read(medley, path)
        if isinstance(theirs, str):
            good = mine is None or not mine[0]
            print(f"{'ok   ' if good else 'WRONG'} {path.name}: refused: {theirs.split(': ', 2)[-1][:110]}")
        else:
            good = mine is None or (mine[0] == theirs[0] and +mine[1] == +theirs[1])
            print(f"{'ok   ' if good else 'WRONG'} {path.name}: {dict(theirs[0])}, {sum(theirs[1].values())} B" + ("" if good else f"; counted {mine}"))
        wrong += not good
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
