"""A mixture-of-experts GPT with expert parallelism: every rank has a part of the batch and some of the experts. Tokens go
to the rank of their expert and back by all_to_all with unequal splits.

    torchrun --nproc-per-node 2 moe_gpt.py --backend medley
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import common
import gpt

EXPERTS, CHOSEN = 8, gpt.size("CHOSEN", 1)   # CHOSEN: how many of them see each token


class AllToAll(torch.autograd.Function):
    """Sends rows to other ranks; their gradients take the reverse path."""

    @staticmethod
    def forward(context, rows, in_splits, out_splits):
        context.splits = (in_splits, out_splits)
        out = rows.new_empty((sum(out_splits), *rows.shape[1:]))
        dist.all_to_all_single(out, rows.contiguous(), out_splits, in_splits)
        return out

    @staticmethod
    def backward(context, gradient):
        in_splits, out_splits = context.splits
        return AllToAll.apply(gradient, out_splits, in_splits), None, None


class MoE(nn.Module):
    """The best experts of each token (top-1 unless EXAMPLE_CHOSEN says otherwise). `ranks` share the experts; a single rank has them all."""

    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__()
        self.router = nn.Linear(gpt.WIDTH, EXPERTS, bias=False)
        everyone = [gpt.MLP() for _ in range(EXPERTS)]   # made equally on every rank, so that all draw the same numbers
        own = EXPERTS // ranks
        self.ranks, self.own = ranks, own
        self.experts = nn.ModuleList(everyone[rank * own:(rank + 1) * own])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = x.flatten(0, 1)
        weights, chosen = (each.flatten() for each in self.router(tokens).softmax(-1).topk(CHOSEN))
        order = chosen.argsort(stable=True)                     # by expert, and so by rank
        counts = torch.bincount(chosen, minlength=EXPERTS)
        token = order // CHOSEN
        rows = tokens[token]
        if self.ranks > 1:
            arriving = torch.empty_like(counts)                 # how many rows each rank has for each of my experts
            dist.all_to_all_single(arriving, counts)
            sent = counts.view(self.ranks, self.own).sum(1).tolist()
            got = arriving.view(self.ranks, self.own).sum(1).tolist()
            rows = AllToAll.apply(rows, sent, got)
            of_expert = torch.arange(self.own, device=x.device).repeat(self.ranks).repeat_interleave(arriving)
        else:
            of_expert = chosen[order]
        done = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            mine = (of_expert == i).nonzero().squeeze(1)
            done = done.index_add(0, mine, expert(rows[mine]))
        if self.ranks > 1:
            done = AllToAll.apply(done, got, sent)
        return torch.zeros_like(tokens).index_add(0, token, done * weights[order, None]).view_as(x)


def model_of(rank: int, ranks: int) -> gpt.GPT:
    torch.manual_seed(3)
    return gpt.GPT(mlps=[MoE(rank, ranks) for _ in range(gpt.LAYERS)])


def average_gradients(model: nn.Module) -> None:
    """Replicated parameters are averaged over the ranks; experts have seen all ranks' tokens and need only the scale."""
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        if ".experts." not in name:
            dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def train(model: gpt.GPT, steps, device: str, parallel: bool, clock: common.Clock | None = None) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    losses = []
    for tokens, targets in steps:
        if parallel:
            tokens, targets = common.my_part(tokens), common.my_part(targets)
        optimizer.zero_grad()
        loss = gpt.loss_of(model(tokens.to(device)), targets.to(device))
        loss.backward()
        if parallel:
            average_gradients(model)
        else:   # experts without tokens also step
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        optimizer.step()
        losses.append(common.mean_over(loss) if parallel else loss.item())
        if clock:
            clock.tick()
    return losses


def main() -> None:
    arguments = common.start(__doc__)
    steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
    clock = common.Clock()
    model = common.named(model_of(dist.get_rank(), dist.get_world_size()).to(arguments.device))
    losses = train(model, steps, arguments.device, True, clock)
    common.finish(arguments, losses, lambda: train(model_of(0, 1).to(arguments.device), steps, arguments.device, False),
                  bound=1e-4, step_times=clock.times)


if __name__ == "__main__":
    main()
