#!/usr/bin/env python3
"""Writes the list of matrix products of the shipped sweep: python3 make_sweep.py zoo.csv > list.csv

Families (the first letter of `name`): z the zoo's layers at tp 1, 2, 4, 8, forward, dgrad and wgrad; a unfused
attention; d decode; v vocabularies; p the zoo's products with one extent changed a little, as an advisor would
propose; r random odd shapes. Shuffled with a fixed seed, so that an interrupted sweep stays representative.
"""
import csv
import random
import sys

MOST_FLOPS, MOST_BYTES = 2.5e12, 6e9
rng = random.Random(20401)


def linear(name, tokens, inside, outside):
    """The three products of a PyTorch Linear, in cuBLAS's column-major convention."""
    yield name + "f", outside, tokens, inside, 1, "TN"
    yield name + "d", inside, tokens, outside, 1, "NN"
    yield name + "w", inside, outside, tokens, 1, "NT"


def layers(model, tp):
    """(name, in, out) of every Linear of one rank; widths that tp does not divide are rounded up."""
    h, ffn, head_dim = (int(model[key]) for key in ("hidden", "ffn", "head_dim"))
    heads, kv = int(model["heads"]), int(model["kv_heads"])
    split = lambda width: -(-width // tp)
    q, kv_width = split(heads) * head_dim, max(1, split(kv)) * head_dim
    gated = model["gated"] == "yes"
    yield "q", h, q + 2 * kv_width
    yield "o", q, h
    yield "u", h, split(ffn) * (2 if gated else 1)  # gate and up in one product, as in Megatron
    if gated:
        yield "g", h, split(ffn)  # or separate, as in Hugging Face
    yield "n", split(ffn), h
    if model["moe_ffn"]:
        yield "e", h, split(int(model["moe_ffn"]))
        yield "x", split(int(model["moe_ffn"])), h


def zoo(models):
    for model in models:
        for tp in (1, 2, 4, 8):
            for name, inside, outside in layers(model, tp):
                for tokens in (1024, 2048, 4096, 8192, 16384, 32768):
                    yield from linear("z" + name, tokens, inside, outside)


def decode(models):
    for model in models:
        for tp in (1, 2, 4, 8):
            for name, inside, outside in layers(model, tp):
                for tokens in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512):
                    yield next(linear("d" + name, tokens, inside, outside))


def vocabularies(models):
    for model in models:
        h, vocab = int(model["hidden"]), int(model["vocab"])
        for width in {vocab, vocab + 7, -(-vocab // 8) * 8, -(-vocab // 64) * 64, -(-vocab // 128) * 128, vocab + 1,
                      -(-vocab // 2) * 2, -(-vocab // 4) * 4, -(-vocab // 16) * 16}:
            for tp in (1, 2, 4, 8):
                for tokens in (1024, 2048, 4096, 8192):
                    yield from linear("v", tokens, h, -(-width // tp))


def attention(name, batch, s, d):
    """Unfused attention, forward and backward: scores, values, and the gradients of both."""
    yield name + "s", s, s, d, batch, "TN"   # scores, and the gradient of the probabilities
    yield name + "v", d, s, s, batch, "NN"   # values, and the gradient of the queries
    yield name + "b", d, s, s, batch, "NT"   # the gradients of values and keys


def attentions(models):
    for model in models:
        for tp in (1, 2, 4, 8):
            for b in (1, 2, 4, 8):
                for s in (1024, 2048, 4096):
                    heads = -(-int(model["heads"]) // tp)
                    yield from attention("a", b * heads, s, int(model["head_dim"]))
    for _ in range(6000):  # other head dimensions and lengths
        d = rng.choice([rng.randrange(16, 257), rng.randrange(2, 33) * 8, rng.randrange(1, 9) * 32])
        s = rng.choice([rng.randrange(64, 4097), rng.randrange(1, 65) * 64, 2 ** rng.randrange(7, 13)])
        yield from attention("a", rng.randrange(1, 200), s, d)


def perturbed(products):
    for name, m, n, k, batch, layout in products:
        extents = [m, n, k]
        which = rng.randrange(3)
        extents[which] = max(1, extents[which] + rng.choice([1, 2, 4, 8, 16, 32, 64, 128]) * rng.randrange(-8, 9))
        yield "p" + name[1:], *extents, batch, layout


def extent(low, high):
    raw = rng.randrange(low, high) if rng.random() < 0.4 else int(low * (high / low) ** rng.random())
    unit = 2 ** rng.randrange(0, 9)
    return max(1, raw // unit * unit if raw >= unit else raw)


def odd(count):
    for _ in range(count):
        kind = rng.random()
        m, n, k = extent(16, 16384), extent(16, 16384), extent(16, 16384)
        if kind < 0.15:
            m, n = (m, rng.randrange(1, 65)) if rng.random() < 0.5 else (rng.randrange(1, 65), n)
        if kind > 0.8:  # large and odd
            m, n, k = extent(2048, 32768), extent(1024, 32768), extent(1024, 16384)
        batch = 1 if rng.random() < 0.9 else rng.randrange(2, 65)
        yield "r", m, n, k, batch, rng.choice(["TN", "NN", "NT"])


def misaligned(count):
    """Small and medium products with rows of 2, 4 or 8 bytes' alignment, where the library's choices vary most."""
    for _ in range(count):
        unit = rng.choice([1, 1, 2, 4])
        units = [rng.choice([8, 16, 64, 128, unit, unit]) for _ in range(3)]
        units[rng.randrange(3)] = unit
        batch = rng.randrange(2, 129) if rng.random() < 0.2 else 1
        high = 2048 if batch > 1 else 12288
        m, n, k = (max(1, int(16 * (high / 16) ** rng.random()) // u * u) for u in units)
        if 2 * m * n * k * batch < 2e11:
            yield "r", m, n, k, batch, rng.choice(["TN", "NN", "NT"])


def fits(product):
    _, m, n, k, batch, _ = product
    return 2 * m * n * k * batch <= MOST_FLOPS and 2 * batch * (m * k + k * n + m * n) <= MOST_BYTES


def sample(products, count):
    products = sorted({p[1:]: p for p in products if fits(p)}.values())
    return rng.sample(products, min(count, len(products)))


def main():
    with open(sys.argv[1], newline="") as file:
        models = list(csv.DictReader(file))
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    share = lambda count: int(count * scale)
    whole_zoo = sample(zoo(models), 10**9)
    families = {"bf16": [rng.sample(whole_zoo, min(share(7000), len(whole_zoo))), sample(decode(models), share(1200)),
                         sample(vocabularies(models), share(1400)), sample(attentions(models), share(2200)),
                         sample(perturbed(whole_zoo), share(2000)), sample(odd(share(8000)), share(5500)),
                         sample(misaligned(share(6000)), share(4000))]}
    everything = [p for family in families["bf16"] for p in family]
    families["fp16"] = [rng.sample(everything, share(900))]
    whole = lambda p: (p[0], *(-(-e // 16) * 16 for e in p[1:4]), p[4], "TN")  # all that cuBLASLt offers on Hopper
    families["fp8"] = [sample((whole(p) for p in rng.sample(everything, share(2400))), share(1200))]
    rows = {p[1:] + (kind,): p[0] for kind, lists in families.items() for family in lists for p in family}
    ordered = sorted(rows)
    rng.shuffle(ordered)
    print("m,n,k,batch,layout,type,name")
    for row in ordered:
        print(*row, rows[row], sep=",")


if __name__ == "__main__":
    main()
