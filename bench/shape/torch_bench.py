#!/usr/bin/env python3
"""Measures through PyTorch what cuBLASLt does not have: fused attention (flash and cuDNN), memory-bound
operations, and matrix products as torch.matmul runs them. Writes attention.csv, stream_torch.csv and torch_gemm.csv.

  python3 bench/shape/torch_bench.py --out DIR --seconds 70 [--gemms list.csv]
"""
import argparse
import csv
import os
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from timing import device, median_us

rng = random.Random(5)


class Rows:
    """A CSV file that is flushed after every row, so that an interrupted run keeps its rows."""

    def __init__(self, path, header):
        self.file = open(path, "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(header)

    def add(self, *cells):
        self.writer.writerow([f"{c:.3f}" if isinstance(c, float) else c for c in cells])
        self.file.flush()


def attention_shapes():
    shapes = []
    for d in (32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 160, 192, 224, 256):
        for s in (512, 1024, 2048, 4096, 8192):
            for b, a, kv in ((1, 8, 8), (1, 32, 32), (4, 16, 16), (2, 32, 8), (1, 25, 25), (8, 12, 12), (1, 64, 8), (4, 32, 32), (1, 4, 1)):
                if b * a * s * s * d * 4 <= 1.5e12:
                    shapes += [(b, a, kv, s, d, True)]
                    if (d in (64, 80, 128)) and s <= 4096:
                        shapes += [(b, a, kv, s, d, False)]
    rng.shuffle(shapes)
    shapes.sort(key=lambda shape: shape[4] not in (64, 80, 96, 128))  # the common head dimensions first
    return shapes


def attention(out, until):
    rows = Rows(os.path.join(out, "attention.csv"), ["backend", "b", "heads", "kv", "s", "d", "causal", "forward_us", "backward_us"])
    backends = [("flash", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)] if device == "cuda" else [("math", SDPBackend.MATH)]
    failed = set()
    for b, a, kv, s, d, causal in attention_shapes():
        q = torch.randn(b, a, s, d, device=device, dtype=torch.bfloat16, requires_grad=True)
        k, v = (torch.randn(b, kv, s, d, device=device, dtype=torch.bfloat16, requires_grad=True) for _ in range(2))
        gradient = torch.randn(b, a, s, d, device=device, dtype=torch.bfloat16)
        for name, backend in backends:
            if time.monotonic() > until:
                return
            try:
                with sdpa_kernel(backend):
                    call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=a != kv)
                    with torch.no_grad():
                        forward = median_us(call)
                    y = call()
                    backward = median_us(lambda: torch.autograd.grad(y, (q, k, v), gradient, retain_graph=True))
                rows.add(name, b, a, kv, s, d, int(causal), forward, backward)
            except Exception as error:  # a backend may lack a head dimension; the sweep continues
                if (name, d, a == kv) not in failed:
                    print(f"attention {name} d={d} heads={a}/{kv}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
                failed.add((name, d, a == kv))


def streams(out, until):
    rows = Rows(os.path.join(out, "stream_torch.csv"), ["op", "rows", "cols", "us"])
    for cols in (1024, 1600, 2048, 2560, 4096, 5120, 8192, 11008, 16384):
        for count in (1024, 4096, 8192, 16384):
            if time.monotonic() > until:
                return
            x = torch.randn(count, cols, device=device, dtype=torch.bfloat16, requires_grad=True)
            z, gradient = torch.randn_like(x), torch.randn_like(x)
            weight = torch.ones(cols, device=device, dtype=torch.bfloat16, requires_grad=True)
            bias = torch.zeros(cols, device=device, dtype=torch.bfloat16, requires_grad=True)
            norm, rms, gelu = F.layer_norm(x, (cols,), weight, bias), F.rms_norm(x, (cols,), weight), F.gelu(x)
            soft = F.softmax(x, -1)
            again = lambda y, inputs: lambda: torch.autograd.grad(y, inputs, gradient, retain_graph=True)
            with torch.no_grad():
                calls = {"add": lambda: x + z, "gelu": lambda: F.gelu(x), "swiglu": lambda: F.silu(x) * z, "copy": lambda: x.clone(),
                         "layer_norm": lambda: F.layer_norm(x, (cols,), weight, bias), "rms_norm": lambda: F.rms_norm(x, (cols,), weight),
                         "softmax": lambda: F.softmax(x, -1)}
                for name, call in calls.items():
                    rows.add(name, count, cols, median_us(call, 3000))
            for name, call in {"layer_norm_backward": again(norm, (x, weight, bias)), "rms_norm_backward": again(rms, (x, weight)),
                               "gelu_backward": again(gelu, (x,)), "softmax_backward": again(soft, (x,))}.items():
                rows.add(name, count, cols, median_us(call, 3000))


def gemms(out, path, until, count):
    """The same products through torch.matmul, once with rotating operands and once with always the same ones."""
    rows = Rows(os.path.join(out, "torch_gemm.csv"), ["m", "n", "k", "batch", "layout", "type", "cold_us", "warm_us"])
    with open(path, newline="") as file:
        listed = [row for row in csv.DictReader(file) if row["type"] == "bf16"]
    for row in rng.sample(listed, min(count, len(listed))):
        if time.monotonic() > until:
            return
        m, n, k, batch = (int(row[key]) for key in ("m", "n", "k", "batch"))
        footprint = 2 * batch * (m * k + k * n + m * n)
        copies = max(2, min(64, (256 << 20) // footprint + 1))
        lead = (batch,) if batch > 1 else ()
        make = lambda *shape: torch.randn(*lead, *shape, device=device, dtype=torch.bfloat16)
        # row-major Y = X·op(W): cuBLAS's B is torch's left operand (n×k), its A the right one (k×m)
        left = [make(k, n).mT if row["layout"] == "NT" else make(n, k) for _ in range(copies)]
        right = [make(m, k).mT if row["layout"] == "TN" else make(k, m) for _ in range(copies)]
        turn = iter(range(10**9))

        def cold():
            i = next(turn) % copies
            torch.matmul(left[i], right[i])

        rows.add(m, n, k, batch, row["layout"], row["type"], median_us(cold, 4000), median_us(lambda: torch.matmul(left[0], right[0]), 4000))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--gemms", help="list of products (make_sweep.py) to run through torch.matmul")
    parser.add_argument("--only", choices=["attention", "streams", "gemms"])
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()
    start = time.monotonic()
    print(torch.__version__, torch.cuda.get_device_name() if device == "cuda" else "cpu",
          "cudnn", torch.backends.cudnn.version() if device == "cuda" else "-")
    until = lambda share: start + args.seconds * (1 if args.only else share)
    parts = {"streams": lambda: streams(args.out, until(0.2)),
             "gemms": lambda: args.gemms and gemms(args.out, args.gemms, until(0.4), args.count),
             "attention": lambda: attention(args.out, until(1.0))}
    for name, part in parts.items():
        try:
            if args.only in (None, name):
                part()
        except Exception as error:  # the failure of one part must not lose the others
            print("failed:", repr(error)[:300], file=sys.stderr)


if __name__ == "__main__":
    main()
