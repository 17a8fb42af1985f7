#!/usr/bin/env python3
"""The co-design paper's sweeps (arXiv 2401.14489) on the local GPU.

  python3 bench/shape/figures.py --list > figures_list.csv          the products to measure with `medley shape bench`
  python3 bench/shape/figures.py --measured figures.csv [--medley build/release/bin/medley]   measured, predicted, published
"""
import argparse
import csv
import json
import subprocess
import tempfile


def products():
    for size in (256, 384, 512, 768, 1024, 1536, 1792, 1793, 2048, 2304, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 10240, 12288):
        yield "square", size, size, size, 1, "TN"
    b, s, a = 4, 2048, 32
    for d in sorted({*range(32, 161, 4), *range(33, 161, 9), *range(168, 257, 8), 66, 82, 98, 130}):
        yield "score", s, s, d, b * a, "TN"
        yield "value", d, s, s, b * a, "NN"
    for heads in (12, 16, 24, 32, 48, 64, 96, 128, 192):
        d = 12288 // heads
        yield "heads-score", s, s, d, heads, "TN"
        yield "heads-value", d, s, s, heads, "NN"
    for ffn in (10752, 10816, 10848, 10880, 10912, 10920, 10922, 10923, 10924, 10928, 10944, 10976, 11008, 11072, 11136, 11264):
        yield "swiglu", ffn, 8192, 4096, 1, "TN"
        yield "swiglu", 4096, 8192, ffn, 1, "TN"
    for vocab in (50176, 50240, 50256, 50257, 50258, 50260, 50264, 50272, 50288, 50304, 50368, 50400, 50432, 51200):
        yield "vocabulary", vocab, 8192, 2560, 1, "TN"
        yield "vocabulary", 2560, 8192, vocab, 1, "NN"
        yield "vocabulary", 2560, vocab, 8192, 1, "NT"


# From the paper's text and figures: TFLOP/s on the GPU named. Its SwiGLU figures are of other products than those above, which
# `medley shape paper` predicts.
PUBLISHED = {("heads-score", 512): ("A100", 207), ("heads-score", 128): ("A100", 110)}


def published_score(d):
    """Score throughput on an A100 by the largest power of two in the head dimension."""
    power = d & -d
    return ("A100", 95 if power == 1 else 150 if power <= 4 else 210)


def predicted(medley, gpu, rows):
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("m,n,k,batch,layout\n" + "".join(f"{r[1]},{r[2]},{r[3]},{r[4]},{r[5]}\n" for r in rows))
        file.flush()
        out = subprocess.run([medley, "shape", "gemm", "--column-major", "--gpu", gpu, file.name, "--json", "-"], check=True, capture_output=True)
    return [row["predicted_us"] for row in json.loads(out.stdout)["rows"]]


def report(args):
    with open(args.measured, newline="") as file:
        measured = {(r["name"], int(r["m"]), int(r["n"]), int(r["k"]), int(r["batch"]), r["layout"]): float(r["us"])
                    for r in csv.DictReader(line for line in file if not line.startswith("#"))}
    rows = [row for row in products() if row in measured]
    print(f"{'figure':12} {'m':>6} {'n':>6} {'k':>6} {'batch':>5} {'':2} {'measured':>9} {'predicted':>9} {'published':>12}  TFLOP/s")
    for row, us in zip(rows, predicted(args.medley, args.gpu, rows)):
        name, m, n, k, batch, layout = row
        work = 2e-6 * m * n * k * batch
        paper = published_score(k) if name == "score" else PUBLISHED.get((name, k))
        print(f"{name:12} {m:6} {n:6} {k:6} {batch:5} {layout:2} {work / measured[row]:9.1f} {work / us:9.1f} "
              f"{(paper[0] + ' ' + str(paper[1])) if paper else '-':>12}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--measured")
    parser.add_argument("--gpu", default="h200-sxm")
    parser.add_argument("--medley", default="build/release/bin/medley")
    args = parser.parse_args()
    if args.list:
        print("name,m,n,k,batch,layout")
        for row in products():
            print(*row, sep=",")
    elif args.measured:
        report(args)
    else:
        parser.error("one of --list and --measured FILE is needed")


if __name__ == "__main__":
    main()
