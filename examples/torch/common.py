"""Shared by the examples: command line, process group, data, and the comparison with a single-process run."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from typing import Callable, Sequence

import torch
import torch.distributed as dist
from torch import nn

TEXT = (b"The sea was calm that night, and the ship moved on without a sound; the men slept, and only the helmsman, "
        b"who had sailed these waters for thirty years, looked at the stars and knew that the wind would turn. ") * 64


def start(description: str, more: dict[str, dict] | None = None) -> argparse.Namespace:
    """Reads the command line, with an example's own options, and joins the process group; torchrun, mpirun or
    `medley run` sets the rank."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--backend", choices=("gloo", "nccl", "medley"), default="medley")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None, help="cuda with nccl, else cpu, unless given")
    parser.add_argument("--time", action="store_true", help="also print the median time of a step")
    parser.add_argument("--unchecked", action="store_true", help="leave out the comparison with one process")
    for name, how in (more or {}).items():
        parser.add_argument(name, **how)
    arguments = parser.parse_args()
    if arguments.backend == "medley":
        import medley.torch  # noqa: F401  registers the backend
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    arguments.device = arguments.device or ("cuda" if arguments.backend == "nccl" else "cpu")
    if arguments.device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")   # needed there for the same bits from run to run
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group(arguments.backend)
    return arguments


def named(model: nn.Module) -> nn.Module:
    """With the backend medley, a trace (MEDLEY_TRACE) then has the module and phase of every operation."""
    medley = sys.modules.get("medley")
    return medley.torch.scopes(model) if medley else model


def between_steps() -> contextlib.AbstractContextManager:
    """Operations inside belong to no training step; they separate the steps in a trace."""
    medley = sys.modules.get("medley")
    return medley.scope("step") if medley else contextlib.nullcontext()


def batches(steps: int, batch: int, length: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The same windows of the text on every rank: (tokens, next tokens)."""
    text = torch.frombuffer(bytearray(TEXT), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(7)
    starts = torch.randint(0, len(text) - length - 1, (steps, batch), generator=generator)
    windows = text[starts[..., None] + torch.arange(length + 1)]
    return [(window[:, :-1], window[:, 1:]) for window in windows]


def my_part(tensor: torch.Tensor, rank: int | None = None, size: int | None = None) -> torch.Tensor:
    """This rank's rows of a batch."""
    rank = dist.get_rank() if rank is None else rank
    size = dist.get_world_size() if size is None else size
    return tensor.chunk(size)[rank]


def mean_over(loss: torch.Tensor, group: dist.ProcessGroup | None = None) -> float:
    """The mean of a number over the ranks of a group."""
    total = loss.detach().clone()
    with between_steps():
        dist.all_reduce(total, group=group)
    return (total / dist.get_world_size(group)).item()


def finish(arguments: argparse.Namespace, losses: Sequence[float], reference: Callable[[], Sequence[float]], bound: float,
           step_times: Sequence[float] = ()) -> None:
    """Compares with the single-process run, prints the losses as exact numbers, and leaves the group. Exits with 1 when they
    differ or the loss does not fall."""
    expected = losses if arguments.unchecked else reference()
    worst = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
    if dist.get_rank() == 0:
        print("loss", " ".join(f"{loss:.6f}" for loss in losses))
        print("bits", " ".join(float(loss).hex() for loss in losses))
        if arguments.time:
            print(f"step_us {sorted(step_times)[len(step_times) // 2] * 1e6:.0f}")
        if not arguments.unchecked:
            print(f"largest difference to one process: {worst:.2e} (at most {bound:.0e})")
    with between_steps():
        dist.barrier()
    dist.destroy_process_group()
    half = len(losses) // 2
    learns = sum(losses[half:]) < sum(losses[:len(losses) - half])
    sys.exit(0 if worst <= bound and learns else 1)


class Clock:
    """Step times without the first. Made at the start of the steps, on all ranks together."""

    processor_time_per_step = 0.0   # of all threads of this process, since the clock was made

    def __init__(self) -> None:
        with between_steps():
            dist.barrier()
        self.times: list[float] = []
        self._began = time.perf_counter()
        self._used, self._steps = time.process_time(), 0

    def tick(self) -> None:
        now = time.perf_counter()
        self.times.append(now - self._began)
        self._began = now
        self._steps += 1
        Clock.processor_time_per_step = (time.process_time() - self._used) / self._steps
        if len(self.times) == 2 and self.times[0] > 0:
            self.times.pop(0)


def train_by_engine(engine, steps: Sequence[tuple[torch.Tensor, torch.Tensor]], loss_of: Callable) -> tuple[list[float], list[float]]:
    """Trains with a DeepSpeed engine, this rank on its part of each batch: the losses, and the times of steps."""
    losses, clock = [], Clock()
    for tokens, targets in steps:
        loss = loss_of(engine(my_part(tokens)), my_part(targets))
        engine.backward(loss)
        engine.step()
        losses.append(mean_over(loss))
        clock.tick()
    return losses, clock.times
