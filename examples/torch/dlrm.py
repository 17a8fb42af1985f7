"""A DLRM: embedding tables and the batch are distributed over the ranks. Every rank looks up its tables for the whole batch,
and an all_to_all gives each rank its part of the batch from all tables; the dense parts are data parallel.

    torchrun --nproc-per-node 2 dlrm.py --backend medley
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import common
import gpt

SCALE = max(1, gpt.WIDTH // 64)
TABLES, ROWS, WIDTH, DENSE, BATCH = 5, 100, 16 * SCALE, 8, gpt.size("BATCH", 32 * SCALE)
HIDDEN = 2 * WIDTH


class Exchange(torch.autograd.Function):
    """Blocks of different sizes to every rank; gradients take the reverse path."""

    @staticmethod
    def forward(context, flat, in_splits, out_splits):
        context.splits = (in_splits, out_splits)
        out = flat.new_empty(sum(out_splits))
        dist.all_to_all_single(out, flat.contiguous(), out_splits, in_splits)
        return out

    @staticmethod
    def backward(context, gradient):
        in_splits, out_splits = context.splits
        return Exchange.apply(gradient, out_splits, in_splits), None, None


class DLRM(nn.Module):
    def __init__(self, rank: int, ranks: int) -> None:
        super().__init__()
        self.rank, self.ranks = rank, ranks
        self.owner = [table % ranks for table in range(TABLES)]   # unequal parts if the number of ranks does not divide the tables
        everyone = [nn.Embedding(ROWS, WIDTH) for _ in range(TABLES)]
        self.tables = nn.ModuleDict({str(t): everyone[t] for t in range(TABLES) if self.owner[t] == rank})
        self.bottom = nn.Sequential(nn.Linear(DENSE, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, WIDTH), nn.ReLU())
        pairs = (TABLES + 1) * TABLES // 2
        self.top = nn.Sequential(nn.Linear(pairs + WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def look_up(self, indices: torch.Tensor) -> torch.Tensor:
        """(my part of the batch, all tables, width), from indices of the whole batch."""
        if self.ranks == 1:
            return torch.stack([self.tables[str(t)](indices[:, t]) for t in range(TABLES)], 1)
        part = len(indices) // self.ranks
        mine = [t for t in range(TABLES) if self.owner[t] == self.rank]
        if mine:
            found = torch.stack([self.tables[str(t)](indices[:, t]) for t in mine])
        else:   # more ranks than tables; it takes part in the exchange of the gradients, too
            found = self.bottom[0].weight.new_zeros(0, len(indices), WIDTH).requires_grad_()
        blocks = [found[:, r * part:(r + 1) * part].flatten() for r in range(self.ranks)]
        out_splits = [sum(owner == r for owner in self.owner) * part * WIDTH for r in range(self.ranks)]
        flat = Exchange.apply(torch.cat(blocks), [len(block) for block in blocks], out_splits)
        of_rank = [block.view(-1, part, WIDTH) for block in flat.split(out_splits)]
        order = sorted(range(TABLES), key=lambda t: self.owner[t])   # the order of arrival
        stacked = torch.cat(of_rank)
        return stacked[torch.tensor([order.index(t) for t in range(TABLES)], device=stacked.device)].transpose(0, 1)

    def forward(self, dense: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        features = torch.cat([bottom[:, None], self.look_up(indices)], 1)
        products = features @ features.transpose(1, 2)
        row, column = torch.tril_indices(TABLES + 1, TABLES + 1, offset=-1)
        return self.top(torch.cat([bottom, products[:, row, column]], 1)).squeeze(1)


def clicks(steps: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """(dense features, table rows, clicked): a hidden rule to learn."""
    generator = torch.Generator().manual_seed(11)
    batches = []
    for _ in range(steps):
        dense = torch.rand(BATCH, DENSE, generator=generator)
        indices = torch.randint(0, ROWS, (BATCH, TABLES), generator=generator)
        batches.append((dense, indices, (dense.sum(1) + indices[:, 0] / ROWS > DENSE / 2 + 0.5).float()))
    return batches


def train(model: DLRM, batches, device: str, parallel: bool, clock: common.Clock | None = None) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for dense, indices, clicked in batches * 2:
        if parallel:
            dense, clicked = common.my_part(dense), common.my_part(clicked)
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(dense.to(device), indices.to(device)), clicked.to(device))
        loss.backward()
        if parallel:
            for name, parameter in model.named_parameters():
                if not name.startswith("tables."):
                    dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()
        optimizer.step()
        losses.append(common.mean_over(loss) if parallel else loss.item())
        if clock:
            clock.tick()
    return losses


def model_of(rank: int, ranks: int) -> DLRM:
    torch.manual_seed(5)
    return DLRM(rank, ranks)


def main() -> None:
    arguments = common.start(__doc__)
    batches, clock = clicks(arguments.steps), common.Clock()
    model = common.named(model_of(dist.get_rank(), dist.get_world_size()).to(arguments.device))
    losses = train(model, batches, arguments.device, True, clock)
    common.finish(arguments, losses, lambda: train(model_of(0, 1).to(arguments.device), batches, arguments.device, False),
                  bound=1e-4, step_times=clock.times)


if __name__ == "__main__":
    main()
