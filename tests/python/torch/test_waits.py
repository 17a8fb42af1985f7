"""How long a rank waited for another that comes late, as `medley trace` shows it, for each way to wait in torch. What
cannot be known is None, never 0.

The delay does not synchronise; it is the fault under test."""

import time

import groups
import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

import medley

LATE = 0.2


def come_late():
    if dist.get_rank() == 1:
        time.sleep(LATE)


def wait_for(way):
    """Rank 0 issues an operation and waits for it in this way."""
    come_late()
    work = dist.all_reduce(torch.ones(1000), async_op=True)
    if way == "work":
        work.wait()
    elif way == "future":
        work.get_future().wait()
    elif way == "child":
        work.get_future().then(lambda future: future.value()).wait()
    elif way == "work after future":
        work.get_future()
        work.wait()


def all_reduces(folder, rank=0):
    """The rows of all_reduce."""
    return [row for row in medley.trace(str(folder), rank=rank, steps=1).rows if row.op == "all_reduce"]


@pytest.mark.parametrize("way, exposed", [("work", True), ("future", None), ("child", None), ("work after future", True)])
def test_a_wait_is_recorded_or_unknown(way, exposed, tmp_path):
    groups.run(2, wait_for, way, environment={"MEDLEY_TRACE": str(tmp_path)})
    row, = all_reduces(tmp_path)
    assert row.exposed is exposed
    assert (row.exposed_us is None) == (exposed is None)
    if exposed:
        assert row.exposed_us > 0.5e6 * LATE


def backward_of_ddp(hook, static_graph):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(64, 64) for _ in range(4)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.02, static_graph=static_graph)
    if hook:
        model.register_comm_hook(None, hook)
    for _ in range(4):
        loss = model(torch.ones(2, 64)).sum()
        come_late()
        loss.backward()


@pytest.mark.parametrize("hook", [None, default_hooks.fp16_compress_hook], ids=["plain", "hook"])
@pytest.mark.parametrize("static_graph", [False, True], ids=["dynamic", "static"])
def test_ddp_waits_at_the_end_of_the_backward_pass(hook, static_graph, tmp_path):
    groups.run(2, backward_of_ddp, hook, static_graph, environment={"MEDLEY_TRACE": str(tmp_path)})
    waiting = [row for row in all_reduces(tmp_path) if row.bytes > 1000]
    assert waiting
    if hook and static_graph:   # the hook issues its first operations, and may wait for them, at the end of the pass
        assert {row.exposed for row in waiting} <= {True, None}
    else:
        assert all(row.exposed for row in waiting)
    late = [row for row in all_reduces(tmp_path, rank=1) if row.bytes > 1000]
    assert sum(row.exposed_us or 0 for row in late) < 0.5e6 * LATE


def keep_a_future():
    """An operation that is issued in the backward pass, but waited for after it."""
    tensor, futures = torch.ones(4, requires_grad=True), []
    tensor.register_hook(lambda gradient: futures.append(dist.all_reduce(gradient.clone(), async_op=True).get_future()))
    loss = tensor.sum()
    come_late()
    loss.backward()
    futures[0].wait()


def test_a_future_that_outlives_the_backward_pass_is_unknown(tmp_path):
    groups.run(2, keep_a_future, environment={"MEDLEY_TRACE": str(tmp_path)})
    row, = all_reduces(tmp_path)
    assert row.exposed is None
