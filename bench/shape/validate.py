#!/usr/bin/env python3
"""Original and proposed shapes as real PyTorch layers on the GPU: forward and backward, fused and unfused attention,
eager and compiled. Reads pairs.json in this folder, writes validate.csv row by row.

  python3 bench/shape/validate.py --out DIR --seconds 170 [--compile] [--pairs FILE]
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from timing import device, median_us

LAYERS = 2  # enough that the caches are cold between uses of the same layer


class Attention(nn.Module):
    def __init__(self, shape, tp, fused, bias):
        super().__init__()
        self.heads, self.kv, self.d, self.fused = shape["heads"] // tp, max(1, shape["kv"] // tp), shape["d"], fused
        self.qkv = nn.Linear(shape["h"], (self.heads + 2 * self.kv) * self.d, bias=bias)
        self.out = nn.Linear(self.heads * self.d, shape["h"], bias=bias)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = self.qkv(x).split([self.heads * self.d, self.kv * self.d, self.kv * self.d], -1)
        q = q.view(b, s, self.heads, self.d).transpose(1, 2)
        k, v = (t.view(b, s, self.kv, self.d).transpose(1, 2) for t in (k, v))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv)
        else:  # as in Hugging Face's eager attention
            if self.heads != self.kv:
                k, v = (t.repeat_interleave(self.heads // self.kv, 1) for t in (k, v))
            scores = torch.matmul(q, k.transpose(2, 3)) * self.d**-0.5
            mask = torch.full((s, s), float("-inf"), device=x.device, dtype=x.dtype).triu(1)
            y = torch.matmul(F.softmax(scores + mask, -1, dtype=torch.float32).to(x.dtype), v)
        return self.out(y.transpose(1, 2).reshape(b, s, -1))


class Mlp(nn.Module):
    def __init__(self, shape, tp, bias):
        super().__init__()
        width, self.gated = shape["ffn"] // tp, shape["gated"]
        self.up = nn.Linear(shape["h"], width, bias=bias)
        self.gate = nn.Linear(shape["h"], width, bias=bias) if self.gated else None
        self.down = nn.Linear(width, shape["h"], bias=bias)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x) if self.gated else F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, shape, tp, fused):
        super().__init__()
        norm = nn.RMSNorm if shape["gated"] else nn.LayerNorm
        self.first, self.second = norm(shape["h"]), norm(shape["h"])
        self.attention = Attention(shape, tp, fused, bias=not shape["gated"])
        self.mlp = Mlp(shape, tp, bias=not shape["gated"])

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


def build(shape, tp, fused):
    if "vocab" in shape:
        return nn.Linear(shape["h"], shape["vocab"], bias=False)
    return nn.Sequential(*(Block(shape, tp, fused) for _ in range(LAYERS)))


def variants(pairs, compiled):
    for pair in pairs:
        logits = "vocab" in pair["original"]
        if compiled and not pair.get("compile"):
            continue
        for fused in ((True,) if logits else (True, False)):
            for which in ("original", "proposed"):
                yield pair, which, fused


def prepare(pair, which, fused, compiled):
    torch.manual_seed(0)
    shape = pair[which]
    with torch.device(device):  # created on the device: the CPU would take seconds to draw the weights
        model = build(shape, pair["tp"], fused).to(dtype=torch.bfloat16)
    if compiled:
        torch._dynamo.reset()
        model = torch.compile(model)
    x = torch.randn(pair["micro_batch"], pair["seq"], shape["h"], device=device, dtype=torch.bfloat16, requires_grad=True)
    return model, x


def measure(pair, which, fused, compiled, rows):
    model, x = prepare(pair, which, fused, compiled)
    with torch.no_grad():
        gradient = torch.randn_like(model(x))
    parameters = list(model.parameters())

    def step():
        torch.autograd.grad(model(x), [x, *parameters], gradient)

    forward = median_us(lambda: model(x), 60_000)  # with autograd recording, as in training
    whole = median_us(step, 150_000)
    count = sum(p.numel() for p in parameters)
    per = 1 if "vocab" in pair[which] else LAYERS
    rows.writerow([pair["name"], which, "fused" if fused else "unfused", "compiled" if compiled else "eager", pair["tp"],
                   pair["micro_batch"], pair["seq"], count // per, f"{forward / per:.2f}", f"{whole / per:.2f}"])


def fill_cache(pairs, share, shares):
    """Compiles this process's share of the variants, so that the measuring process finds them in Inductor's cache."""
    for index, variant in enumerate(variants(pairs, True)):
        if index % shares != share:
            continue
        model, x = prepare(*variant, True)
        with torch.no_grad():
            model(x)
        y = model(x)
        torch.autograd.grad(y, [x, *model.parameters()], torch.randn_like(y))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--out", required=True)
    parser.add_argument("--pairs", default=os.path.join(here, "pairs.json"))
    parser.add_argument("--seconds", type=float, default=170)
    parser.add_argument("--compile", action="store_true", help="also the compiled variants of the pairs marked so")
    parser.add_argument("--share", help=argparse.SUPPRESS)
    args = parser.parse_args()
    with open(args.pairs) as file:
        pairs = json.load(file)
    if args.share:
        return fill_cache(pairs, *map(int, args.share.split("/")))
    until = time.monotonic() + args.seconds
    with open(os.path.join(args.out, "validate.csv"), "w", newline="", buffering=1) as file:
        rows = csv.writer(file)
        rows.writerow(["name", "shape", "attention", "mode", "tp", "micro_batch", "seq", "parameters", "forward_us", "step_us"])

        def measure_all(compiled):
            for variant in variants(pairs, compiled):
                if time.monotonic() > until:
                    return
                try:
                    measure(*variant, compiled, rows)
                except Exception as error:  # the failure of one variant must not lose the others
                    print(variant[0]["name"], variant[1], "failed:", repr(error)[:300], file=sys.stderr)
                if device == "cuda":
                    torch.cuda.empty_cache()

        measure_all(False)
        if args.compile:
            shares = 6
            command = [sys.executable, os.path.abspath(__file__), "--out", args.out, "--pairs", args.pairs, "--share"]
            workers = [subprocess.Popen(command + [f"{i}/{shares}"]) for i in range(shares)]
            for worker in workers:
                try:
                    worker.wait(max(1, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    worker.kill()
            measure_all(True)


if __name__ == "__main__":
    main()
