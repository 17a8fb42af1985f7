"""A minimal GPT: bytes in, bytes out. All examples train it."""

from __future__ import annotations

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

def size(name: str, default: int) -> int:
    """bench/torch/hosts and bench/compress/train give the examples other sizes."""
    return int(os.environ.get(f"EXAMPLE_{name}", default))


VOCABULARY, HEADS = 256, 4
WIDTH, LENGTH, LAYERS = size("WIDTH", 64), size("LENGTH", 32), size("LAYERS", 4)
HIDDEN = size("HIDDEN", 4 * WIDTH)   # of an MLP, and of each expert


class Attention(nn.Module):
    def __init__(self, width: int = WIDTH, heads: int = HEADS) -> None:
        super().__init__()
        self.width_of_head = width // heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape

        def heads(projection: nn.Module) -> torch.Tensor:   # the heads on this rank, under tensor parallelism
            return projection(x).view(batch, length, -1, self.width_of_head).transpose(1, 2)

        mixed = F.scaled_dot_product_attention(heads(self.query), heads(self.key), heads(self.value), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, mlp: nn.Module | None = None) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.LayerNorm(WIDTH), mlp or MLP()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """`first` and `last` are the layers this model holds; each stage of a pipeline holds some."""

    def __init__(self, first: int = 0, last: int = LAYERS, mlps: list[nn.Module] | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH) if first == 0 else None
        self.positions = nn.Embedding(LENGTH, WIDTH) if first == 0 else None
        self.blocks = nn.ModuleList(Block(mlps[i] if mlps else None) for i in range(first, last))
        self.norm = nn.LayerNorm(WIDTH) if last == LAYERS else None
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False) if last == LAYERS else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.tokens is not None:
            x = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)) if self.head is not None else x


def seeded(seed: int = 1) -> GPT:
    """The same weights on every rank and in every run."""
    torch.manual_seed(seed)
    return GPT()


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train_alone(steps: list[tuple[torch.Tensor, torch.Tensor]], device: str, rate: float = 1e-3) -> list[float]:
    """The losses of one process on the whole batch: the examples' reference."""
    model = seeded().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for tokens, targets in steps:
        optimizer.zero_grad()
        loss = loss_of(model(tokens.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
