#!/usr/bin/env python3
"""Products and element-wise chains of training steps on one GPU, which the cost model of `medley plan` derives from others:
fp8 and bf16 products in bursts and back to back, weight gradients that accumulate, experts on several streams, and the eager
chains around the experts of gpt-oss.

    python bench/shape/measure_steps.py bench/shape/data/h200_steps.csv      # about 80 s on an H200
"""
import argparse
import atexit
import csv
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("out")
parser.add_argument("--short", action="store_true")
arguments = parser.parse_args()
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
device = "cuda"
rows = []


@atexit.register  # an error in one part keeps the others
def write():
    with open(arguments.out, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("kind", "case", "us", "rate", "unit"))
        writer.writerows(rows)


def timed(call, seconds):
    """Median microseconds of a call in chunks of about 20 ms for `seconds`."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        call()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    once = max(1e-3, start.elapsed_time(end))
    repeat = max(1, int(20 / once))
    samples, begin = [], time.perf_counter()
    while True:
        start.record()
        for _ in range(repeat):
            call()
        end.record()
        torch.cuda.synchronize()
        samples.append(1e3 * start.elapsed_time(end) / repeat)
        if time.perf_counter() - begin > seconds:
            break
    tail = sorted(samples[len(samples) // 2:])  # the second half: the clock has settled
    return tail[len(tail) // 2]


def burst(call):
    """Microseconds of a few calls on a GPU that rested, median of three."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples = []
    for _ in range(3):
        time.sleep(0.03)
        call()
        start.record()
        for _ in range(5):
            call()
        end.record()
        torch.cuda.synchronize()
        samples.append(1e3 * start.elapsed_time(end) / 5)
    return sorted(samples)[1]


def add(kind, case, us, work, unit):
    rows.append((kind, case, f"{us:.2f}", f"{work / us * 1e-6 if unit == 'TFLOP/s' else work / us * 1e-3:.1f}", unit))
    print(*rows[-1], sep=",", flush=True)


seconds = 0.1 if arguments.short else 0.8
brief = 0.05 if arguments.short else 0.15

# fp8 against bf16, in a burst and back to back: (m tokens, n outputs, k inputs) of GPT-3, Llama and Nemotron layers on their tensor ranks
shapes = [(2048, 12288, 12288), (2048, 12288, 3072), (4096, 14336, 4096), (4096, 28672, 4096), (8192, 12288, 6144),
          (8192, 6144, 12288), (4096, 6656, 16384), (8192, 16384, 6144), (4096, 4096, 14336)]
for m, n, k in shapes[:2] if arguments.short else shapes:
    a, b = torch.randn(m, k, device=device), torch.randn(n, k, device=device)
    flops = 2 * m * n * k
    x, w = a.bfloat16(), b.bfloat16()
    out = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    call = lambda: torch.mm(x, w.t(), out=out)
    add("bf16 burst", f"{m}x{n}x{k}", burst(call), flops, "TFLOP/s")
    add("bf16 sustained", f"{m}x{n}x{k}", timed(call, seconds), flops, "TFLOP/s")
    try:
        x8, w8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        one = torch.ones((), device=device)
        for fast in (True, False):
            call = lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)
            name = "fp8 fast" if fast else "fp8 split"
            add(f"{name} burst", f"{m}x{n}x{k}", burst(call), flops, "TFLOP/s")
            add(f"{name} sustained", f"{m}x{n}x{k}", timed(call, seconds), flops, "TFLOP/s")
    except Exception as error:  # noqa: BLE001
        print("fp8:", str(error)[:200], file=sys.stderr)

# Weight gradients: n x k from `tokens` rows, written, accumulated in bf16, written in f32, accumulated in f32
gradients = [(12288, 3072), (14336, 4096), (6656, 16384), (3072, 2048), (12288, 6144)]
for tokens in ((2048,) if arguments.short else (2048, 4096, 16384)):
    for n, k in gradients[:1] if arguments.short else gradients:
        dy, x = torch.randn(tokens, n, device=device).bfloat16(), torch.randn(tokens, k, device=device).bfloat16()
        flops = 2 * tokens * n * k
        narrow, wide = torch.zeros(n, k, device=device, dtype=torch.bfloat16), torch.zeros(n, k, device=device)
        cases = {"wgrad bf16": lambda: torch.mm(dy.t(), x, out=narrow),
                 "wgrad bf16 accumulated": lambda: narrow.addmm_(dy.t(), x),
                 "wgrad f32": lambda: torch.mm(dy.t(), x, out_dtype=torch.float32),
                 "wgrad f32 accumulated": lambda: torch.addmm(wide, dy.t(), x, out_dtype=torch.float32)}
        for name, call in cases.items():
            try:
                add(name, f"{tokens}x{n}x{k}", timed(call, brief), flops, "TFLOP/s")
            except Exception as error:  # noqa: BLE001
                print(name, str(error)[:200], file=sys.stderr)

# Experts: one product each on four streams (Transformer Engine), one after the other, as one batch
streams = [torch.cuda.Stream() for _ in range(4)]
for experts, m, n, k in ((16, 2048, 1536, 2048),) if arguments.short else (
        (16, 2048, 1536, 2048), (16, 512, 1536, 2048), (16, 2048, 2048, 768), (4, 8192, 5760, 2880), (16, 4096, 5760, 2880),
        (16, 4096, 2880, 2880), (8, 1024, 4096, 7168), (16, 256, 3072, 4096)):
    x, w = torch.randn(experts, m, k, device=device).bfloat16(), torch.randn(experts, n, k, device=device).bfloat16()
    out = torch.empty(experts, m, n, device=device, dtype=torch.bfloat16)
    flops = 2 * experts * m * n * k

    def over_streams():
        now = torch.cuda.current_stream()
        for s in streams:
            s.wait_stream(now)
        for i in range(experts):
            with torch.cuda.stream(streams[i % 4]):
                torch.mm(x[i], w[i].t(), out=out[i])
        for s in streams:
            now.wait_stream(s)

    def one_by_one():
        for i in range(experts):
            torch.mm(x[i], w[i].t(), out=out[i])

    graphs = {}
    for name, call in (("experts on 4 streams", over_streams), ("experts one by one", one_by_one),
                       ("experts as a batch", lambda: torch.bmm(x, w.transpose(1, 2), out=out))):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
        add(name, f"{experts}x{m}x{n}x{k}", timed(graph.replay, brief), flops, "TFLOP/s")

# The eager chains around gpt-oss's experts in Megatron-Core: bytes are those a plan counts
tokens, h = (8192, 2880) if arguments.short else (65536, 2880)
y = torch.randn(tokens, h, device=device).bfloat16().requires_grad_()
bias = [torch.randn(h, device=device).bfloat16().requires_grad_() for _ in range(2)]
p = torch.rand(tokens, 1, device=device).requires_grad_()
g = torch.randn(tokens, h, device=device).bfloat16()
half = [tokens // 2] * 2


def apply_bias():
    return torch.cat([t + b * q for t, b, q in zip(torch.split(y, half), bias, torch.split(p, half))]).to(y.dtype)


def clear():
    for t in (y, p, *bias):
        t.grad = None


def both():
    clear()
    apply_bias().backward(g)


with torch.no_grad():
    add("expert bias forward", f"{tokens}x{h}", timed(apply_bias, brief), 28 * tokens * h, "GB/s")
add("expert bias forward and backward", f"{tokens}x{h}", timed(both, brief), 68 * tokens * h, "GB/s")
del y, g
z = torch.randn(tokens, 2 * h, device=device).bfloat16().requires_grad_()
g = torch.randn(tokens, 2 * h, device=device).bfloat16()


def clamp():
    glu, linear = z.chunk(2, -1)
    return torch.cat((glu.clamp(min=None, max=7.0), linear.clamp(min=-7.0, max=7.0)), -1)


def clamp_both():
    z.grad = None
    clamp().backward(g)


with torch.no_grad():
    add("clamp forward", f"{tokens}x{2 * h}", timed(clamp, brief), 8 * tokens * 2 * h, "GB/s")
add("clamp forward and backward", f"{tokens}x{2 * h}", timed(clamp_both, brief), 23 * tokens * 2 * h, "GB/s")
out = torch.empty_like(g)
add("copy", f"{tokens}x{2 * h}", timed(lambda: out.copy_(g), brief), 4 * tokens * 2 * h, "GB/s")
