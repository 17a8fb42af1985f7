#!/usr/bin/env python3
"""The run time of `medley plan` itself: one plan of GPT-3 175B on 1,024 GPUs with its time, and a search over 10,000
layouts. Prints the median of wall-clock and CPU time; exits 1 when a goal is missed by CPU time.

    bench/plan/speed.py [build/release/bin/medley] [--runs 20]
"""
import argparse, json, os, resource, statistics, subprocess, sys, tempfile, time

PLAN = ["plan", "--model", "gpt3-175b", "--framework", "megatron", "--machine", "dgx-a100",
        "--layout", "dp=16,tp=8,pp=8,sp=on,recompute=selective", "--micro-batch", "1", "--global-batch", "1536"]
SWEEP = ["plan", "--model", "gpt3-175b", "--framework", "megatron", "--machine", "dgx-h100", "--layout", "zero=1,sp=on",
         "--sweep", "dp=1,2,4,8,16,32,64", "--sweep", "tp=2,4,8", "--sweep", "pp=1,2,4,6,8,12,16,24", "--sweep", "vp=1,2",
         "--sweep", "micro_batch=1,2,4", "--sweep", "gbs=1536,3072", "--sweep", "recompute=none,selective,full",
         "--sweep", "overlap_grad_reduce=on,off"]


def timed(command):
    """Wall-clock and CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status not in (0, 1):  # 1: the layout does not fit
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("medley", nargs="?", default="build/release/bin/medley")
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    runs = [timed([args.medley, *PLAN]) for _ in range(args.runs)]
    wall, cpu = (statistics.median(column) for column in zip(*runs))
    print(f"one plan of 175B on 1,024 GPUs with time, start of the process included: "
          f"{1e3 * wall:.0f} ms, of which CPU {1e3 * cpu:.0f} ms (goal 50)")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sweep.json")
        seconds, busy = timed([args.medley, *SWEEP, "--json", path])
        with open(path) as file:
            points = json.load(file)["points"]
    refused = sum("refused" in point for point in points)
    planned = len(points) - refused
    if planned == 0:
        sys.exit("every layout was refused")
    per = 1e4 / planned
    cores = os.cpu_count() or 1
    print(f"{planned:,} layouts of 175B planned with time ({refused:,} refused): {seconds:.1f} s on {cores} cores, "
          f"CPU {busy:.1f} s; 10,000 take {seconds * per:.1f} s, CPU {busy * per:.1f} s (goal 60 s on 2 cores)")
    return 0 if cpu < 0.05 and busy * per / 2 < 60 else 1


if __name__ == "__main__":
    sys.exit(main())
