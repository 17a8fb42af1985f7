#!/usr/bin/env python3
"""Measures matrix products of real layers that no calibration has seen: as a burst and back to back for a second.

    python3 bench/shape/held_out.py measure -o bench/shape/data/h200_held_out.csv [--seconds 100]    # on the GPU
    python3 bench/shape/held_out.py report bench/shape/data/h200_held_out.csv --medley build/release/bin/medley

The layers belong to published models; products that are in the sweep (bench/shape/data/h200_sweep.csv) are skipped. Products run
through torch.matmul in a CUDA graph, with operands that rotate through 256 MB. A burst follows half a second of rest; the sustained
time is the mean over one second of replays, of which the power limit takes its share.
"""
import argparse
import csv
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# Published models: hidden size, ffn, heads × head_dim, key-value heads × head_dim, vocabulary (rows of one tensor rank).
LAYERS = {
    "qwen2.5-14b": (5120, 13824, 5120, 1024, 152064), "gemma-2-9b": (3584, 14336, 4096, 2048, 256000),
    "phi-4": (5120, 17920, 5120, 1280, 100352), "granite-8b": (4096, 12800, 4096, 1024, 49155),
    "qwen3-32b": (5120, 25600, 8192, 1024, 151936), "yi-34b": (7168, 20480, 7168, 1024, 64000),
    "nemotron-15b": (6144, 24576, 6144, 1024, 256000), "command-r": (8192, 22528, 8192, 8192, 256000),
    "minitron-4b": (3072, 9216, 3072, 1024, 256000), "smollm-360m": (960, 2560, 960, 320, 49152),
    "qwen2-0.5b": (896, 4864, 896, 128, 151936), "olmoe": (2048, 1024, 2048, 2048, 50304),
    "internlm2-20b": (6144, 16384, 6144, 1024, 92544), "stablelm-3b": (2560, 6912, 2560, 2560, 50304),
}
COLUMNS = ["name", "m", "n", "k", "batch", "layout", "type", "burst_us", "sustained_us", "settled_us", "clock_mhz", "power_w"]


def seen():
    with open(os.path.join(HERE, "data", "h200_sweep.csv"), newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(int(r["m"]), int(r["n"]), int(r["k"]), r["layout"]) for r in rows if r["batch"] == "1" and r["type"] == "bf16"}


def products(count):
    """`count` products in cuBLAS's numbers (docs/shape-model.md), spread over models, layers, tokens, tensor ranks and layouts."""
    known, all_of = seen(), []
    for (name, (h, ffn, q, kv, vocab)), tokens in itertools.product(LAYERS.items(), (1536, 2048, 3072, 6144, 8192, 12288)):
        for tp in (1, 2, 4):
            for part, out, width in (("qkv", (q + 2 * kv) // tp, h), ("projection", h, q // tp), ("up", ffn // tp, h), ("down", h, ffn // tp),
                                     ("head", vocab // tp, h)):
                if out * width * tokens < 5e8 or out * width * tokens > 8e12 or (tp > 1 and h < 3000):
                    continue
                for layout, sizes in (("TN", (out, tokens, width)), ("NN", (width, tokens, out)), ("NT", (width, out, tokens))):
                    if (*sizes, layout) not in known:
                        all_of.append((f"{name} {part} tp{tp} {tokens} tokens", *sizes, layout))
    random.Random(22).shuffle(all_of)
    return all_of[:count]


class Product:
    def __init__(self, m, n, k, layout):
        import torch
        self.torch, copies = torch, max(2, min(64, (256 << 20) // (2 * (m * k + k * n + m * n)) + 1))
        make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        # row-major Y = X·op(W): cuBLAS's B is torch's left operand (n×k), its A the right one (k×m)
        left = [make(k, n).mT if layout == "NT" else make(n, k) for _ in range(copies)]
        right = [make(m, k).mT if layout == "TN" else make(k, m) for _ in range(copies)]
        result = torch.empty(n, m, device="cuda", dtype=torch.bfloat16)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):  # the library allocates its workspace before the capture
            for _ in range(3):
                torch.matmul(left[0], right[0], out=result)
        side.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        torch.matmul(left[1], right[1], out=result)
        end.record()
        end.synchronize()
        # about 4 ms a graph, each operand equally often
        self.calls = copies * max(1, round(4.0 / max(begin.elapsed_time(end), 0.004) / copies))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(self.calls):
                torch.matmul(left[i % copies], right[i % copies], out=result)
        self.graph.replay()
        torch.cuda.synchronize()
        self.kept = (left, right, result)

    def replays_us(self, marks):
        """Microseconds of one product in each of `marks` replays."""
        events = [self.torch.cuda.Event(enable_timing=True) for _ in range(marks + 1)]
        events[0].record()
        for event in events[1:]:
            self.graph.replay()
            event.record()
        events[-1].synchronize()
        return [a.elapsed_time(b) * 1e3 / self.calls for a, b in zip(events, events[1:])]

    def burst_us(self):
        time.sleep(0.5)
        return statistics.median(self.replays_us(5))

    def sustained(self, seconds):
        """Mean over `seconds`, mean over its second half, clock and power near the end."""
        one = self.replays_us(1)[0] * self.calls * 1e-6
        probe, times, began = None, [], time.monotonic()
        while time.monotonic() - began < seconds:
            times += self.replays_us(max(1, round(0.05 / one)))
            if probe is None and time.monotonic() - began > 0.6 * seconds:
                probe = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"],
                                         stdout=subprocess.PIPE, text=True)
        try:
            clock, power = probe.communicate(timeout=5)[0].splitlines()[0].split(",")
        except Exception:  # the times do not depend on the probe
            clock, power = "", ""
        return statistics.mean(times), statistics.mean(times[len(times) // 2:]), clock.strip(), power.strip()


def measure(arguments):
    import torch
    print(torch.__version__, torch.cuda.get_device_name(), flush=True)
    until = time.monotonic() + arguments.seconds
    with open(arguments.output, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for name, m, n, k, layout in products(arguments.count):
            if time.monotonic() > until:
                break
            try:
                product = Product(m, n, k, layout)
                burst = product.burst_us()
                sustained, settled, clock, power = product.sustained(1.0)
            except torch.cuda.OutOfMemoryError:
                print(f"{name}: out of memory", file=sys.stderr)
                continue
            out.writerow([name, m, n, k, 1, layout, "bf16", f"{burst:.3f}", f"{sustained:.3f}", f"{settled:.3f}", clock, power])
            file.flush()
            del product
            torch.cuda.empty_cache()


def predicted(medley, path, gpu, *options):
    command = [medley, "shape", "gemm", path, "--column-major", "--gpu", gpu, "--json", "-", *options]
    return [row["predicted_us"] for row in json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["rows"]]


def report(arguments):
    with open(arguments.data, newline="") as file:
        rows = list(csv.DictReader(file))
    for title, column, options in (("burst", "burst_us", []), ("one second, back to back", "sustained_us", ["--sustained"])):
        errors = sorted(((guess / float(row[column]) - 1, row) for guess, row in
                         zip(predicted(arguments.medley, arguments.data, arguments.gpu, *options), rows)), key=lambda e: -abs(e[0]))
        print(f"{title}: {len(errors)} products, error {100 * statistics.mean(abs(e) for e, _ in errors):.1f} %, "
              f"bias {100 * statistics.mean(e for e, _ in errors):+.1f} %")
        for error, row in errors[:arguments.worst]:
            print(f"  {100 * error:+6.1f} %  {row['name']} {row['layout']} {row['m']}x{row['n']}x{row['k']}: {row[column]} us")
    slower = [float(r["sustained_us"]) / float(r["burst_us"]) - 1 for r in rows]
    print(f"sustained over burst: mean {100 * statistics.mean(slower):+.1f} %, largest {100 * max(slower):+.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure", help="on the GPU")
    measuring.add_argument("-o", "--output", required=True)
    measuring.add_argument("--seconds", type=float, default=100, help="stop starting new products after this long")
    measuring.add_argument("--count", type=int, default=64)
    measuring.set_defaults(run=measure)
    reporting = commands.add_parser("report", help="the error of `medley shape gemm`")
    reporting.add_argument("data")
    reporting.add_argument("--medley", default="build/release/bin/medley")
    reporting.add_argument("--gpu", default="h200-sxm")
    reporting.add_argument("--worst", type=int, default=8)
    reporting.set_defaults(run=report)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
