"""What one training step of each example sends, derived from the model's shapes and the framework's behaviour before
anything has run. `medley reconcile` compares a recording with it:

    MEDLEY_TRACE=out/moe torchrun --nproc-per-node 2 moe_gpt.py
    python expected.py moe_gpt -n 2 -o moe.json && medley reconcile out/moe --schedule moe.json --step 2 --assert

IGNORED lists what a description leaves open, such as the order of a pipeline's messages.

`medley plan` knows DDP and FSDP2 itself: this prints the request instead of a schedule.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Callable, Iterable

import torch
from torch import nn

import common
import dlrm
import gpt
import moe_gpt

F32, I64 = 4, 8
BATCH, MODEL = 8, (f"h={gpt.WIDTH},a={gpt.HEADS},layers={gpt.LAYERS},vocab={gpt.VOCABULARY},seq={gpt.LENGTH},"
                   "tied=off,fused_qkv=off")


class Rank:
    """What one rank sends in a step, as a schedule's entries."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.groups = {"world": list(range(ranks))}
        self.entries: list[dict] = []

    def sends(self, op: str, size: int, why: str, phase: str, times: int = 1, group: str = "world", peer: int | None = None,
              dtype: str = "f32", blocks: bool = False) -> None:
        """`peer` is also the root of a broadcast; `blocks`: the program waits for it before it continues."""
        entry = {"kind": "comm", "phase": phase, "dtype": dtype, "op": op, "group": group, "bytes": size, "count": 1, "why": why}
        if not blocks:
            entry["token"] = 1
        if peer is not None:
            entry["peer"] = peer
        self.entries += [dict(entry) for _ in range(times)]

    def json(self) -> dict:
        return {"rank": self.rank, "groups": self.groups, "entries": self.entries}


def sizes(parameters: Iterable[nn.Parameter]) -> list[int]:
    return [parameter.numel() * F32 for parameter in parameters]


def zero1(rank: Rank, step: int) -> None:
    """DDP with its default buckets, of which the first takes 1 MiB: the whole model. Then each rank broadcasts the
    parameters that it stepped."""
    whole = sizes(gpt.GPT().parameters())
    assert sum(whole) < 1 << 20
    rank.sends("all_reduce", sum(whole), "all gradients fit in DDP's first bucket", "backward")
    owned: list[list[int]] = [[] for _ in range(rank.ranks)]   # the largest first, each to the rank that has least
    for size in sorted(whole, reverse=True):
        min(owned, key=sum).append(size)
    for owner, sizes_of_owner in enumerate(owned):
        for size in sizes_of_owner:
            rank.sends("broadcast", size, "the owner of its optimizer state has stepped it", "optimizer", peer=owner)


def tensor_parallel(rank: Rank, batch: int, layers: range, group: str = "world") -> int:
    """`batch` samples through some layers sharded by tensor_parallel.py; returns the number of norms."""
    whole = batch * gpt.LENGTH * gpt.WIDTH * F32          # activations of the whole sequence
    positions = gpt.LENGTH * gpt.WIDTH * F32
    logits = batch * gpt.LENGTH * gpt.VOCABULARY * F32

    def pair(size: int, forward: str, backward: str, why: str, times: int = 1) -> None:
        rank.sends(forward, size, why, "forward", times, group)
        rank.sends(backward, size, f"{why}: the way back", "backward", times, group)

    if layers.start == 0:
        pair(whole, "reduce_scatter", "all_gather", "each rank has a part of the vocabulary; parts of the sequence result")
        pair(positions, "reduce_scatter", "all_gather", "each rank has some positions; parts of the sequence result")
    blocks = 2 * len(layers)                              # attention and MLP
    pair(whole, "all_gather", "reduce_scatter", "column-parallel matrices take the whole sequence", blocks)
    pair(whole, "reduce_scatter", "all_gather", "row-parallel matrices give parts of the sequence", blocks)
    norms = 2 * len(layers)
    if layers.stop == gpt.LAYERS:
        pair(whole, "all_gather", "reduce_scatter", "the head takes the whole sequence")
        rank.sends("all_gather", logits, "each rank has the logits of a part of the vocabulary", "forward", 1, group)
        norms += 1
    return norms


def norm_gradients(rank: Rank, norms: int, group: str = "world", reads: int = 3) -> None:
    """Each rank has the gradients of its part of the sequence. DTensor keeps them as partial sums and adds them up
    whenever they are read: by AdamW three times, once for the mean and twice for the square; by fused AdamW once."""
    rank.sends("all_reduce", gpt.WIDTH * F32, "AdamW reads a partial gradient of a norm", "optimizer", reads * 2 * norms, group)


def tp(rank: Rank, step: int) -> None:
    norm_gradients(rank, tensor_parallel(rank, 4, range(gpt.LAYERS)))


def tp_dp(rank: Rank, step: int) -> None:
    """tp_dp_gpt.py on 2 ranks, which are all tensor parallel."""
    norm_gradients(rank, tensor_parallel(rank, BATCH, range(gpt.LAYERS)), reads=1)


def pipeline(rank: Rank, stage: int, stages: list[int], size: int, micro_batches: int, group: str) -> None:
    """1F1B: each micro-batch's activations to the next stage, their gradients to the one before."""
    if stage + 1 < len(stages):
        after = stages[stage + 1]
        rank.sends("send", size, "activations to the next stage", "forward", micro_batches, group, after)
        rank.sends("recv", size, "their gradients from it", "backward", micro_batches, group, after)
    if stage > 0:
        before = stages[stage - 1]
        rank.sends("recv", size, "activations from the stage before", "forward", micro_batches, group, before)
        rank.sends("send", size, "their gradients to it", "backward", micro_batches, group, before)


def pp(rank: Rank, step: int) -> None:
    micro_batches = 2 * rank.ranks
    size = BATCH // micro_batches * gpt.LENGTH * gpt.WIDTH * F32
    pipeline(rank, rank.rank, list(range(rank.ranks)), size, micro_batches, "world")


def three_dimensions(rank: Rank, step: int) -> None:
    """parallel_3d.py on 2 ranks (a pipeline alone) or 4 (with tensor parallelism); the pipeline's ranks are neighbours."""
    stages, tp_ranks = 2, rank.ranks // 2
    stage, cut = rank.rank % stages, rank.rank // stages
    rank.groups |= {"pp": [cut * stages + s for s in range(stages)], "tp": [c * stages + stage for c in range(tp_ranks)]}
    layers = gpt.LAYERS // stages
    micro_batches = 2
    batch = BATCH // micro_batches
    size = batch * gpt.LENGTH * gpt.WIDTH * F32 // tp_ranks   # parts of the sequence are sent between stages
    pipeline(rank, stage, rank.groups["pp"], size, micro_batches, "pp")
    if tp_ranks > 1:
        for _ in range(micro_batches):
            norms = tensor_parallel(rank, batch, range(stage * layers, (stage + 1) * layers), "tp")
        norm_gradients(rank, norms, "tp")


def average(rank: Rank, parameters: Iterable[tuple[str, nn.Parameter]], own: str) -> None:
    """Gradients of replicated parameters, one by one."""
    for name, parameter in parameters:
        if own not in name:
            rank.sends("all_reduce", parameter.numel() * F32, "gradients of what every rank has", "backward", blocks=True)


def routing(step: int, ranks: int) -> list[list[list[list[int]]]]:
    """Tokens by layer, rank and expert in each step up to this one, from a training run on one process."""
    model = moe_gpt.model_of(0, 1)
    seen: list[torch.Tensor] = []
    for block in model.blocks:
        block.mlp.router.register_forward_hook(lambda module, inputs, scores: seen.append(scores.detach().argmax(-1)))
    moe_gpt.train(model, common.batches(step, batch=BATCH, length=gpt.LENGTH), "cpu", False)
    counts = [[torch.bincount(part, minlength=moe_gpt.EXPERTS).tolist() for part in chosen.chunk(ranks)] for chosen in seen]
    return [counts[at:at + gpt.LAYERS] for at in range(0, len(counts), gpt.LAYERS)]


def moe(rank: Rank, step: int) -> None:
    own, row = moe_gpt.EXPERTS // rank.ranks, gpt.WIDTH * F32
    mine = range(rank.rank * own, (rank.rank + 1) * own)
    volumes = []
    for layer in routing(step, rank.ranks)[-1]:
        given = sum(layer[rank.rank]) * row
        taken = sum(of_rank[expert] for of_rank in layer for expert in mine) * row
        volumes.append((given, taken))
        rank.sends("all_to_all", moe_gpt.EXPERTS * I64, "how many tokens come", "forward", dtype="i64", blocks=True)
        rank.sends("all_to_all", given, "my tokens to the ranks of their experts", "forward", blocks=True)
        rank.sends("all_to_all", taken, "what my experts made of the tokens that came", "forward", blocks=True)
    for given, taken in reversed(volumes):
        rank.sends("all_to_all", given, "gradients of what the experts made", "backward", blocks=True)
        rank.sends("all_to_all", taken, "gradients of the tokens that came", "backward", blocks=True)
    average(rank, moe_gpt.model_of(rank.rank, rank.ranks).named_parameters(), ".experts.")


def recommender(rank: Rank, step: int) -> None:
    row = dlrm.WIDTH * F32
    model = dlrm.model_of(rank.rank, rank.ranks)
    rank.sends("all_to_all", len(model.tables) * dlrm.BATCH * row, "rows of my tables for everyone's samples", "forward",
               blocks=True)
    rank.sends("all_to_all", dlrm.TABLES * dlrm.BATCH // rank.ranks * row, "gradients of the rows of my samples", "backward",
               blocks=True)
    average(rank, model.named_parameters(), "tables.")


PLANNED = {
    "ddp_gpt": lambda ranks: f"--model {MODEL} --layout dp={ranks},bucket_cap_mb=0.25 --framework ddp "
                             f"--dtype f32 --micro-batch {BATCH // ranks}",
    "fsdp2_gpt": lambda ranks: f"--model {MODEL} --layout dp={ranks},clip=off --framework fsdp2 --dtype f32 --micro-batch {BATCH // ranks}",
}
DESCRIBED: dict[str, Callable[[Rank, int], None]] = {
    "zero1_gpt": zero1, "tp_gpt": tp, "tp_dp_gpt": tp_dp, "pp_gpt": pp, "parallel_3d": three_dimensions, "moe_gpt": moe, "dlrm": recommender}


# Fields that these descriptions or the recording lack; for `medley reconcile --ignore`.
IGNORED = {
    "fsdp2_gpt": "reduce,async",     # on CPUs FSDP2 averages, in blocking calls; the plan describes its streams on GPUs
    "tp_gpt": "order",               # forward and backward are described in pairs
    "tp_dp_gpt": "order",
    "pp_gpt": "order,phase",         # a stage receives outside its modules
    "parallel_3d": "order,phase",
}


def schedule(name: str, ranks: int, step: int) -> dict:
    """Every rank's step, in the form that medley replay and medley reconcile read."""
    everyone = [Rank(rank, ranks) for rank in range(ranks)]
    for rank in everyone:
        DESCRIBED[name](rank, step)
    return {"schema": "medley.schedule/1", "world": ranks, "ranks": [rank.json() for rank in everyone]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example", choices=[*PLANNED, *DESCRIBED])
    parser.add_argument("-n", type=int, default=2, help="ranks")
    parser.add_argument("--step", type=int, default=2, help="which step of the training, where it matters (moe_gpt)")
    parser.add_argument("-o", help="file for the schedule; default: standard output")
    arguments = parser.parse_args()
    if arguments.example in PLANNED:
        print("medley plan", PLANNED[arguments.example](arguments.n))
        return
    text = json.dumps(schedule(arguments.example, arguments.n, arguments.step), indent=1)
    if arguments.o:
        with open(arguments.o, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
