"""Compression from PyTorch: scopes, rules of a group, and DDP's communication hook, which must not change what a model learns."""

import gc
import threading
import weakref

import groups
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import medley.torch


def scopes():
    rank = dist.get_rank()
    values = torch.linspace(-1, 1, 5000) * (rank + 1)
    exact, rounded = values.clone(), values.clone()
    dist.all_reduce(exact)
    with medley.torch.compress("int4"):
        dist.all_reduce(rounded)
    assert not torch.equal(exact, rounded) and (exact - rounded).abs().max() < 1
    everyone = [torch.empty_like(rounded) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, rounded)
    assert all(torch.equal(rounded, other) for other in everyone), "all ranks have the same bits"
    with medley.torch.compress("zstd"):
        lossless = values.clone()
        dist.all_reduce(lossless)
        assert torch.equal(lossless, exact)
        indices = torch.arange(4000) // 100
        routed = torch.empty_like(indices)
        dist.all_to_all_single(routed, indices)
        assert routed.sum() == 2 * indices[rank * 2000:(rank + 1) * 2000].sum()
    with medley.torch.compress("int8"), pytest.raises(RuntimeError, match="lz4 and zstd take every type"):
        dist.all_reduce(torch.ones(10, dtype=torch.int64))
    group = dist.new_group(pg_options=medley.torch.Options(rules="all_reduce:1K-=shm+int4"))
    by_rule = values.clone()
    dist.all_reduce(by_rule, group=group)
    assert torch.equal(by_rule, rounded)


def test_scopes_and_rules():
    groups.run(2, scopes)


def drops_feedback():
    """An operation keeps its error feedback until it is complete, whatever the program keeps."""
    rank, values = dist.get_rank(), torch.linspace(-1, 1, 100_000)
    feedback = medley.torch.ErrorFeedback()
    if rank == 1:   # which starts once rank 0 has dropped its own
        dist.recv(torch.empty(1), 0)
    with medley.torch.compress("int8", feedback):
        work = dist.all_reduce(values, async_op=True)
    alive = weakref.ref(feedback)
    del feedback
    gc.collect()
    assert alive() is None, "no reference of Python's is left"
    others = [medley.torch.ErrorFeedback() for _ in range(100)]   # would get its memory
    if rank == 0:
        dist.send(torch.ones(1), 1)
    work.wait()
    assert (values - 2 * torch.linspace(-1, 1, 100_000)).abs().max() < 0.1
    return [len(other) for other in others]


def test_an_operation_keeps_its_error_feedback():
    assert groups.run(2, drops_feedback) == [[0] * 100] * 2


class Bucket:
    """As DDP describes one to its hook."""

    def __init__(self, index: int, elements: int, last: bool):
        self.index, self.buffer, self.is_last = lambda: index, lambda: torch.empty(elements), lambda: last


def test_residuals_of_former_buckets_are_dropped():
    state = medley.torch.CompressState("int8")
    for index, elements in enumerate([10, 20, 30]):
        state.of_bucket(Bucket(index, elements, index == 2))
    first = state.of_bucket(Bucket(0, 10, False))
    state.of_bucket(Bucket(1, 50, True))
    assert sorted(state.residuals) == [0, 1] and state.residuals[1][0] == 50
    assert state.of_bucket(Bucket(0, 10, False)) is first, "what stayed keeps its residual"


def test_compress_left_on_another_thread_is_an_error():
    errors = []

    def leave():
        try:
            medley.torch._c10d.pop_compression()
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "another thread" in errors[0]


def moe_tokens():
    """A route for tokens leaves the counts that travel with them alone: they are integers."""
    rank, generator = dist.get_rank(), torch.Generator().manual_seed(dist.get_rank())
    tokens, counts = torch.randn(200, 64, generator=generator), torch.tensor([150, 50])
    with medley.torch.route("all_to_all=shm+fp8_e4m3"):
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts)
        received = torch.empty(int(arriving.sum()), 64)
        dist.all_to_all_single(received, tokens, arriving.tolist(), counts.tolist())
    assert arriving.tolist() == [counts[rank]] * 2
    everyone = torch.cat([torch.randn(200, 64, generator=torch.Generator().manual_seed(r)).split([150, 50])[rank] for r in range(2)])
    error, own = (received - everyone).abs(), slice(rank * counts[rank], (rank + 1) * counts[rank])
    assert torch.all(error <= 0.0625 * everyone.abs() + 1e-4), "within the bound of fp8_e4m3"
    assert error.max() > 1e-3 and error[own].max() == 0, "compressed, but for what a rank sends to itself"


def test_tokens_of_an_moe_are_compressed_by_a_route():
    groups.run(2, moe_tokens)


def fsdp2(codec: str | None) -> list[float]:
    """FSDP2 issues its reduce_scatter inside torch, so a route compresses it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(0)
    model = GPT()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(25):
        text = batch(step, dist.get_rank())
        with medley.torch.route(f"reduce_scatter=shm+{codec}" if codec else "reduce_scatter=shm"):
            loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses


def shard():
    return fsdp2(None), fsdp2("int8")


def test_reduce_scatter_of_fsdp2_is_compressed_by_a_route():
    for plain, compressed in groups.run(2, shard, timeout=200):
        assert plain != compressed, "int8 rounds"
        assert abs(compressed[-1] - plain[-1]) <= 0.01 * plain[-1]


class GPT(nn.Module):
    def __init__(self, words: int = 64, width: int = 48, layers: int = 2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(32, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True, norm_first=True)
                                    for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        length = words.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.tokens(words) + self.places(torch.arange(length))
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
        return self.head(x)


def batch(step: int, rank: int) -> torch.Tensor:
    """A language of fixed steps with noise: each word follows from the two before it, four times out of five."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    text = torch.randint(0, 64, (16, 32), generator=generator)
    for i in range(2, 32):
        follows = (3 * text[:, i - 1] + text[:, i - 2] + 7) % 64
        text[:, i] = torch.where(torch.rand(16, generator=generator) < 0.8, follows, text[:, i])
    return text


def train(codec: str | None, steps: int) -> float:
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT())
    if codec:
        model.register_comm_hook(medley.torch.CompressState(codec), medley.torch.compress_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(steps):
        text = batch(step, dist.get_rank())
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    mean = torch.stack(losses[-20:]).mean()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def learn():
    plain, compressed = train(None, 200), train("int8", 200)
    if dist.get_rank() == 0:
        print(f"loss after 200 steps: {plain:.4f} without compression, {compressed:.4f} with int8 and error feedback")
    assert plain < 4.1, "it learns something"
    return plain, compressed


def test_a_gpt_learns_the_same_with_int8_and_error_feedback():
    for plain, compressed in groups.run(2, learn, timeout=400):
        assert abs(compressed - plain) <= 0.01 * plain, f"{plain:.4f} without compression, {compressed:.4f} with it"
