#!/usr/bin/env python3
"""Measures training steps of GPT and Llama shapes on one GPU with plain PyTorch, for bench/steps/run.py.

bf16 autocast-free training as most small codebases run it: bf16 parameters, causal scaled_dot_product_attention, fused
AdamW, the loss in f32. Eager and torch.compile. Writes one CSV in the columns that `medley plan calibrate` reads:

    python bench/steps/measure_h200.py -o /tmp/h200_steps.csv --seconds 330 [--set blind] [--each 4]

The set `blind` has other models, sequences and micro-batches than the first, on which constants were fitted; the set
`blind2` others than both. Its predictions were written down before it was measured (data/h200_blind2_predicted.csv).
"""
import argparse
import csv
import gc
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

COLUMNS = ("source,model,gpu,gpus,framework,precision,seq,micro_batch,global_batch,dp,tp,pp,cp,vp,ep,zero,recompute,"
           "tokens_per_s_per_gpu,memory_gb,h,a,kv,layers,ffn,vocab,gated,tied,compile").split(",")

# name: hidden, heads, key-value heads, layers, ffn, vocabulary, gated, tied
SHAPES = {
    "gpt-125m": (768, 12, 12, 12, 3072, 50304, 0, 1),
    "gpt-350m": (1024, 16, 16, 24, 4096, 50304, 0, 1),
    "gpt-760m": (1280, 20, 20, 36, 5120, 50304, 0, 1),
    "gpt-1.3b": (2048, 16, 16, 24, 8192, 50304, 0, 1),
    "gpt-2.7b": (2560, 32, 32, 32, 10240, 50304, 0, 1),
    "llama-1b": (2048, 32, 8, 16, 8192, 128256, 1, 1),
    "llama-3b": (3072, 24, 8, 28, 8192, 128256, 1, 1),
    "llama-7b": (4096, 32, 32, 32, 11008, 32000, 1, 0),
    # shapes of published models, for the blind set
    "smollm-360m": (960, 15, 5, 32, 2560, 49152, 1, 1),
    "gpt2-medium": (1024, 16, 16, 24, 4096, 50257, 0, 1),
    "qwen2-0.5b": (896, 14, 2, 24, 4864, 151936, 1, 1),
    "tinyllama-1.1b": (2048, 32, 4, 22, 5632, 32000, 1, 0),
    "phi-1.5": (2048, 32, 32, 24, 8192, 51200, 0, 0),
    "qwen3-1.7b": (2048, 16, 8, 28, 6144, 151936, 1, 1),
    "gemma-2b": (2048, 8, 1, 18, 16384, 256000, 1, 1),
    "qwen2.5-3b": (2048, 16, 2, 36, 11008, 151936, 1, 1),
    "minitron-4b": (3072, 24, 8, 32, 9216, 256000, 1, 0),
    "mistral-7b": (4096, 32, 8, 32, 14336, 32000, 1, 0),
    # and for the second one
    "opt-125m": (768, 12, 12, 12, 3072, 50272, 0, 1),
    "smollm-135m": (576, 9, 3, 30, 1536, 49152, 1, 1),
    "cerebras-256m": (1088, 17, 17, 14, 4352, 50257, 0, 1),
    "pythia-410m": (1024, 16, 16, 24, 4096, 50304, 0, 0),
    "danube3-500m": (1536, 16, 8, 16, 4096, 32000, 1, 0),
    "bloom-560m": (1024, 16, 16, 24, 4096, 250880, 0, 1),
    "cerebras-590m": (1536, 12, 12, 18, 6144, 50257, 0, 1),
    "olmo-1b": (2048, 16, 16, 16, 8192, 50304, 1, 1),
    "pythia-1.4b": (2048, 16, 16, 24, 8192, 50304, 0, 0),
    "qwen2.5-1.5b": (1536, 12, 2, 28, 8960, 151936, 1, 1),
    "smollm2-1.7b": (2048, 32, 32, 24, 8192, 49152, 1, 1),
    "danube-1.8b": (2560, 32, 8, 24, 6912, 32000, 1, 0),
    "pythia-2.8b": (2560, 32, 32, 32, 10240, 50304, 0, 0),
    "phi-3-mini": (3072, 32, 32, 32, 8192, 32064, 1, 0),
    "yi-6b": (4096, 32, 4, 32, 11008, 64000, 1, 0),
    "opt-6.7b": (4096, 32, 32, 32, 16384, 50272, 0, 1),
    "deepseek-7b": (4096, 32, 32, 30, 11008, 102400, 1, 0),
}
# shape, micro-batch, sequence, compiled
CASES = {"first": [
    ("gpt-125m", 4, 1024, 0), ("gpt-125m", 4, 1024, 1), ("gpt-125m", 32, 1024, 0), ("gpt-125m", 2, 8192, 0),
    ("gpt-350m", 1, 1024, 0), ("gpt-350m", 8, 1024, 0), ("gpt-350m", 8, 1024, 1), ("gpt-350m", 8, 4096, 0),
    ("gpt-760m", 8, 1024, 0), ("gpt-760m", 16, 1024, 1), ("gpt-1.3b", 2, 2048, 0), ("gpt-1.3b", 8, 2048, 0),
    ("gpt-1.3b", 8, 2048, 1), ("gpt-1.3b", 1, 16384, 0), ("gpt-2.7b", 4, 2048, 0), ("gpt-2.7b", 2, 4096, 0),
    ("llama-1b", 2, 4096, 0), ("llama-1b", 2, 4096, 1), ("llama-1b", 1, 16384, 0), ("llama-3b", 2, 4096, 0),
    ("llama-3b", 2, 4096, 1), ("llama-7b", 1, 2048, 0), ("llama-7b", 2, 4096, 0), ("llama-7b", 1, 8192, 0),
], "blind": [
    ("smollm-360m", 12, 2048, 0), ("tinyllama-1.1b", 4, 2048, 0), ("phi-1.5", 6, 2048, 0), ("qwen3-1.7b", 3, 4096, 0),
    ("smollm-360m", 16, 2048, 1), ("mistral-7b", 2, 3072, 0), ("gpt2-medium", 8, 1024, 0), ("qwen2-0.5b", 4, 4096, 0),
    ("tinyllama-1.1b", 8, 2048, 1), ("minitron-4b", 1, 6144, 0), ("qwen3-1.7b", 1, 12288, 0), ("qwen2.5-3b", 2, 2048, 1),
    ("gemma-2b", 2, 3072, 1),
], "blind2": [
    ("opt-125m", 16, 2048, 0), ("smollm-135m", 16, 2048, 0), ("cerebras-256m", 8, 2048, 0), ("pythia-410m", 4, 4096, 0),
    ("danube3-500m", 2, 8192, 0), ("bloom-560m", 4, 2048, 0), ("cerebras-590m", 8, 2048, 0), ("olmo-1b", 4, 4096, 0),
    ("pythia-1.4b", 1, 8192, 0), ("qwen2.5-1.5b", 2, 6144, 0), ("smollm2-1.7b", 1, 16384, 0), ("danube-1.8b", 3, 3072, 0),
    ("pythia-2.8b", 3, 2048, 0), ("phi-3-mini", 1, 4096, 0), ("yi-6b", 2, 2048, 0), ("opt-6.7b", 1, 2048, 0),
    ("deepseek-7b", 1, 5120, 0), ("opt-125m", 32, 1024, 1), ("olmo-1b", 6, 2048, 1), ("danube3-500m", 1, 16384, 1),
    ("cerebras-590m", 12, 1024, 1),
]}


class Attention(nn.Module):
    def __init__(self, h, a, kv, bias, rotary):
        super().__init__()
        self.a, self.kv, self.d, self.rotary = a, kv, h // a, rotary
        self.qkv = nn.Linear(h, (a + 2 * kv) * self.d, bias=bias)
        self.projection = nn.Linear(h, h, bias=bias)

    def forward(self, x, cos, sin):
        b, s, h = x.shape
        q, k, v = self.qkv(x).split([h, self.kv * self.d, self.kv * self.d], dim=2)
        q = q.view(b, s, self.a, self.d).transpose(1, 2)
        k = k.view(b, s, self.kv, self.d).transpose(1, 2)
        v = v.view(b, s, self.kv, self.d).transpose(1, 2)
        if self.rotary:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.kv != self.a)
        return self.projection(y.transpose(1, 2).reshape(b, s, h))


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self, h, a, kv, ffn, gated):
        super().__init__()
        norm = nn.RMSNorm if gated else nn.LayerNorm
        self.norm_1, self.norm_2, self.gated = norm(h), norm(h), gated
        self.attention = Attention(h, a, kv, not gated, gated)
        self.up = nn.Linear(h, ffn, bias=not gated)
        if gated:
            self.gate = nn.Linear(h, ffn, bias=False)
        self.down = nn.Linear(ffn, h, bias=not gated)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        y = self.norm_2(x)
        y = F.silu(self.gate(y)) * self.up(y) if self.gated else F.gelu(self.up(y), approximate="tanh")
        return x + self.down(y)


class Transformer(nn.Module):
    def __init__(self, shape, seq):
        super().__init__()
        h, a, kv, layers, ffn, vocab, gated, tied = shape
        self.embedding = nn.Embedding(vocab, h)
        self.positions = None if gated else nn.Embedding(seq, h)
        self.layers = nn.ModuleList(Layer(h, a, kv, ffn, bool(gated)) for _ in range(layers))
        self.norm = nn.RMSNorm(h) if gated else nn.LayerNorm(h)
        self.head = nn.Linear(h, vocab, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        d = h // a
        angles = torch.outer(torch.arange(seq).float(), 10000 ** (-torch.arange(0, d, 2).float() / d))
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin())

    def forward(self, tokens, labels):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


def measure(shape, batch, seq, compiled, budget):
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Transformer(shape, seq).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    run = torch.compile(model) if compiled else model
    tokens = torch.randint(0, shape[5], (batch, seq), device="cuda")
    labels = torch.randint(0, shape[5], (batch, seq), device="cuda")

    def step():
        loss = run(tokens, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times, end = [], time.monotonic() + budget
    # The queue of kernels never runs empty between steps, as in a training loop: events, not synchronisation,
    # measure time.
    while len(times) < 5 or (time.monotonic() < end and len(times) < 60):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(6)]
        marks[0].record()
        for mark in marks[1:]:
            step()
            mark.record()
        torch.cuda.synchronize()
        times += [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]
    return statistics.median(times), torch.cuda.max_memory_allocated() / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="h200_steps.csv")
    parser.add_argument("--gpu", default="h200-sxm", help="name of the GPU in the gpu column")
    parser.add_argument("--seconds", type=float, default=330, help="stop starting new cases after this long")
    parser.add_argument("--each", type=float, default=4, help="seconds of measuring per case")
    parser.add_argument("--set", choices=CASES, default="first")
    arguments = parser.parse_args()
    began = time.monotonic()
    with open(arguments.output, "w", newline="") as file:
        out = csv.DictWriter(file, COLUMNS)
        out.writeheader()
        for name, batch, seq, compiled in CASES[arguments.set]:
            if time.monotonic() - began > arguments.seconds:
                print(f"out of time before {name}")
                break
            h, a, kv, layers, ffn, vocab, gated, tied = SHAPES[name]
            try:
                ms, gb = measure(SHAPES[name], batch, seq, compiled, arguments.each)
            except torch.cuda.OutOfMemoryError:
                print(f"{name} {batch}x{seq}: out of memory")
                continue
            finally:
                torch._dynamo.reset()
                gc.collect()
                torch.cuda.empty_cache()
            print(f"{name} {batch}x{seq} {'compiled' if compiled else 'eager'}: {ms:.2f} ms, {gb:.1f} GB", flush=True)
            out.writerow(dict(source=f"torch {torch.__version__}", model=name, gpu=arguments.gpu, gpus=1, framework="ddp",
                              precision="bf16", seq=seq, micro_batch=batch, global_batch=batch, dp=1, tp=1, pp=1, zero=0,
                              recompute="none", tokens_per_s_per_gpu=round(batch * seq / ms * 1e3, 1),
                              memory_gb=round(gb, 2), h=h, a=a, kv=kv, layers=layers, ffn=ffn, vocab=vocab, gated=gated,
                              tied=tied, compile="on" if compiled else "off"))
            file.flush()


if __name__ == "__main__":
    main()
