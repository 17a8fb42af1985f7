"""What compression does to training: step time, bytes on the wire and loss of the examples' models with and without it. One of two ranks;
bench/compress/train starts them.

    train.py WHAT [--steps 200] [--backend gloo] [--csv FILE]     WHAT: ddp, fsdp2 or moe

Every variant has a model of its own. They take their steps in turn, on the same data, so that noise affects all alike.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import pathlib
import statistics
import sys
import time

# Sizes at which the link decides. DDP and FSDP2: many gradients for each token. The mixture: four small experts see each token, as in
# fine-grained mixtures (DeepSeek-V3: eight, each 0.29 times as wide inside as the model), so that tokens travel a lot and compute little.
SIZES = {"ddp": {"WIDTH": 256}, "fsdp2": {"WIDTH": 256}, "moe": {"WIDTH": 64, "HIDDEN": 32, "CHOSEN": 4, "LAYERS": 2}}
BATCHES = {"ddp": 1, "fsdp2": 1, "moe": 64}      # sequences of a rank
THREADS = 4      # of a rank, if it has so many cores: more only spin at these sizes
BUCKET_MB = 4    # of DDP, so that the first gradients travel while the last are computed
for name, value in SIZES.get(sys.argv[1] if len(sys.argv) > 1 else "", {}).items():
    os.environ[f"EXAMPLE_{name}"] = str(value)
if "MEDLEY_RANK" in os.environ:   # started by bench/compress/train
    os.environ.update(RANK=os.environ["MEDLEY_RANK"], WORLD_SIZE=os.environ["MEDLEY_WORLD_SIZE"], LOCAL_RANK="0",
                      MASTER_ADDR=os.environ["MEDLEY_STORE"].rpartition(":")[0], MASTER_PORT="29501")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import gpt  # noqa: E402
import medley.torch  # noqa: E402
import moe_gpt  # noqa: E402

VARIANTS = {"ddp": ["none", "int8", "fp8_e4m3"], "fsdp2": ["none", "int8"], "moe": ["none", "fp8_e4m3"]}
LAST = 20   # steps over which a loss is averaged


def text(step: int, rank: int, sequences: int) -> torch.Tensor:
    """A language with 64 words, each followed by one of eight: the best loss is ln 8 = 2.08."""
    follows = torch.randint(0, 64, (64, 8), generator=torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(1000 * step + rank)
    choice = torch.randint(0, 8, (sequences, gpt.LENGTH + 1), generator=generator)
    words = [torch.randint(0, 64, (sequences,), generator=generator)]
    for i in range(gpt.LENGTH):
        words.append(follows[words[-1], choice[:, i]])
    return torch.stack(words, 1)


class Variant:
    def __init__(self, what: str, codec: str, backend: str) -> None:
        self.what, self.codec = what, codec
        self.rules = ""
        if what == "moe":
            self.model = moe_gpt.model_of(dist.get_rank(), dist.get_world_size())
            if codec != "none":
                self.rules = f"all_to_all={backend}+{codec}"
        elif what == "ddp":
            self.model = DistributedDataParallel(gpt.seeded(), gradient_as_bucket_view=True, bucket_cap_mb=BUCKET_MB)
            if codec != "none":
                self.model.register_comm_hook(medley.torch.CompressState(codec), medley.torch.compress_hook)
        else:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard
            mesh = init_device_mesh("cpu", (dist.get_world_size(),))
            self.model = gpt.seeded()
            for block in self.model.blocks:
                fully_shard(block, mesh=mesh)
            fully_shard(self.model, mesh=mesh)
            if codec != "none":
                self.rules = f"reduce_scatter={backend}+{codec}"
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3 if what == "moe" else 1e-3, fused=what != "fsdp2")
        self.losses: list[float] = []
        self.times: list[float] = []
        self.used: list[float] = []   # processor time, which other programs hardly change
        self.sent: list[int] = []

    def step(self, words: torch.Tensor) -> torch.Tensor:
        with medley.torch.route(self.rules) if self.rules else contextlib.nullcontext():
            self.optimizer.zero_grad()
            loss = gpt.loss_of(self.model(words[:, :-1]), words[:, 1:])
            loss.backward()
            if self.what == "moe":
                average_together(self.model)
            self.optimizer.step()
        return loss.detach()


def average_together(model: torch.nn.Module) -> None:
    """As moe_gpt.average_gradients, in one message."""
    for parameter in model.parameters():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad /= dist.get_world_size()
    shared = [parameter.grad for name, parameter in model.named_parameters() if ".experts." not in name]
    flat = torch.cat([gradient.flatten() for gradient in shared])
    dist.all_reduce(flat)
    for gradient, part in zip(shared, flat.split([gradient.numel() for gradient in shared]), strict=True):
        gradient.copy_(part.view_as(gradient))


def sent_bytes() -> int:
    """Everything that this host sent; 0 where it is no namespace host."""
    counter = pathlib.Path("/sys/class/net/eth0/statistics/tx_bytes")
    return int(counter.read_text()) if counter.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=VARIANTS)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop early")
    parser.add_argument("--backend", default="gloo")
    parser.add_argument("--csv", help="append the losses to this file")
    arguments = parser.parse_args()
    torch.set_num_threads(min(THREADS, max(1, (os.cpu_count() or 2) // 2)))   # two ranks
    dist.init_process_group("medley")
    rank, what = dist.get_rank(), arguments.what
    variants = [Variant(what, codec, arguments.backend) for codec in VARIANTS[what]]
    began, done = time.perf_counter(), 0
    for step in range(arguments.steps):
        words = text(step, rank, BATCHES[what])
        for i in range(len(variants)):
            variant = variants[(i + step) % len(variants)]
            dist.barrier()
            sent, start, used = sent_bytes(), time.perf_counter(), time.process_time()
            loss = variant.step(words)
            variant.times.append(time.perf_counter() - start)
            variant.used.append(time.process_time() - used)
            variant.sent.append(sent_bytes() - sent)
            dist.all_reduce(loss)
            variant.losses.append(loss.item() / dist.get_world_size())
        done = step + 1
        late = torch.tensor(float(time.perf_counter() - began > arguments.seconds))
        dist.all_reduce(late, dist.ReduceOp.MAX)
        if late.item():
            break
    if rank == 0:
        report(what, variants, done)
        if arguments.csv:
            write(arguments.csv, what, variants)
    dist.barrier()
    dist.destroy_process_group()


def report(what: str, variants: list[Variant], steps: int) -> None:
    plain = variants[0]
    parameters = sum(parameter.numel() for parameter in plain.model.parameters())
    print(f"{what}: {parameters / 1e6:.2f} million parameters on this rank, {steps} steps of each variant in turn")
    loss_of = lambda variant: statistics.mean(variant.losses[-LAST:])   # noqa: E731
    for variant in variants:
        faster = statistics.median(a / b for a, b in zip(plain.times[2:], variant.times[2:], strict=True))
        bytes_sent = statistics.median(variant.sent)
        share = f", {100 * bytes_sent / statistics.median(plain.sent):5.1f} % of the bytes" if bytes_sent else ""
        print(f"  {variant.codec:9} step {1e3 * statistics.median(variant.times[2:]):7.1f} ms ({faster:4.2f}x), "
              f"processor {1e3 * statistics.median(variant.used[2:]):6.1f} ms{share}, "
              f"loss {loss_of(variant):.4f} ({100 * (loss_of(variant) / loss_of(plain) - 1):+.2f} %)", flush=True)


def write(file: str, what: str, variants: list[Variant]) -> None:
    fresh = not pathlib.Path(file).exists()
    with open(file, "a", encoding="utf-8", newline="") as out:
        rows = csv.writer(out, lineterminator="\n")
        if fresh:
            rows.writerow(["what", "codec", "step", "loss"])
        for variant in variants:
            for step in range(0, len(variant.losses), 10):
                near = variant.losses[step:step + 10]
                rows.writerow([what, variant.codec, step + len(near) // 2, f"{statistics.mean(near):.4f}"])


if __name__ == "__main__":
    main()
