"""c10d's operations beyond what PyTorch's own suite covers: types, views, unequal parts, futures, coalescing."""

import datetime

import groups
import pytest
import torch
import torch.distributed as dist

import medley

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.float8_e4m3fn]


def of_rank(rank, count, dtype):
    return (torch.arange(count) % 2 + rank % 2).to(torch.float32).to(dtype)


def every_type():
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        everyone = [of_rank(r, 6, dtype) for r in range(size)]
        gathered = [torch.empty(6, dtype=dtype) for _ in range(size)]
        dist.all_gather(gathered, everyone[rank])
        assert all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(gathered, everyone)), dtype
        copy = everyone[rank].clone()
        dist.broadcast(copy, src=size - 1)
        assert torch.equal(copy.view(torch.uint8), everyone[size - 1].view(torch.uint8)), dtype
        if dtype in (torch.bool, torch.float8_e4m3fn, torch.uint16):
            continue
        total = everyone[rank].clone()
        dist.all_reduce(total)
        assert torch.equal(total, torch.stack(everyone).sum(0).to(dtype)), dtype
    with pytest.raises(medley.Invalid, match="all_reduce: sum is not defined for tensors of type Float8"):
        dist.all_reduce(torch.zeros(4).to(torch.float8_e4m3fn))
    with pytest.raises(medley.Invalid, match="all_reduce: max is not defined"):
        dist.all_reduce(torch.zeros(4, dtype=torch.uint16), op=dist.ReduceOp.MAX)


def test_every_type():
    groups.run(2, every_type)


def views():
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = torch.zeros(4, 6)
    column = whole[:, 2]                      # not contiguous
    column.fill_(rank + 1)
    dist.all_reduce(column)
    assert (whole[:, 2] == size * (size + 1) / 2).all() and whole.sum() == whole[:, 2].sum()
    turned = torch.zeros(3, 2 * size).t()
    dist.all_gather_into_tensor(turned, torch.full((2, 3), float(rank)))
    assert all((turned[2 * r:2 * r + 2] == r).all() for r in range(size))
    box = torch.full((5, 3), -1.0)
    if rank == 0:
        dist.send(torch.arange(5.0).repeat(3, 1).t()[:, 0], 1)
    elif rank == 1:
        dist.recv(box[:, 1], 0)
        assert torch.equal(box[:, 1], torch.arange(5.0)) and (box[:, 0] == -1).all()
    parameter = torch.nn.Parameter(torch.ones(3))
    dist.all_reduce(parameter.data)
    dist.broadcast(parameter.detach(), 0)
    empty = torch.zeros(0, 4)
    dist.all_reduce(empty)
    scalar = torch.tensor(1.0)
    dist.all_reduce(scalar)
    assert scalar == size


def test_views():
    groups.run(2, views)


def uneven():
    rank, size = dist.get_rank(), dist.get_world_size()
    sent = [r + 1 for r in range(size)]
    got = [rank + 1] * size
    rows = torch.cat([torch.full((n, 2), float(rank * 10 + r)) for r, n in enumerate(sent)])
    out = torch.empty(sum(got), 2)
    dist.all_to_all_single(out, rows, got, sent)
    assert torch.equal(out, torch.cat([torch.full((rank + 1, 2), float(r * 10 + rank)) for r in range(size)]))
    outs = [torch.empty(n) for n in got]
    dist.all_to_all(outs, [torch.full((n,), float(rank * 10 + r)) for r, n in enumerate(sent)])
    assert all((o == r * 10 + rank).all() for r, o in enumerate(outs))
    gathered = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(gathered, torch.full((rank + 1,), float(rank)))
    assert all((g == r).all() for r, g in enumerate(gathered))
    part = torch.empty(rank + 1)
    dist.reduce_scatter(part, [torch.full((r + 1,), 2.0) for r in range(size)])
    assert (part == 2 * size).all()
    with pytest.raises(medley.Invalid, match="all_to_all_single: the input's split sizes add up"):
        dist.all_to_all_single(out, rows, got, [n + 1 for n in sent])


def test_uneven_parts():
    groups.run(3, uneven)


def futures():
    size = dist.get_world_size()
    x = torch.ones(1000)
    future = dist.all_reduce(x, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
    assert (future.wait() == 2 * size).all()
    work = dist.all_reduce(torch.ones(4), async_op=True)
    work.get_future().wait()
    assert work.is_completed() and work.is_success()
    for _ in range(50):   # nobody keeps them
        dist.all_reduce(torch.ones(20_000), async_op=True)
    dist.barrier()


def test_futures():
    groups.run(2, futures)


def coalesced():
    rank, size = dist.get_rank(), dist.get_world_size()
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        many = [torch.full((n,), 1.0) for n in (3, 5, 1000)]
        for tensor in many:
            dist.all_reduce(tensor)
    manager.wait()
    assert all((tensor == size).all() for tensor in many)
    few, counts = [torch.full((n,), 1.0) for n in (7, 2)], [torch.full((n,), 2, dtype=torch.int64) for n in (4, 1)]
    gathered = [torch.empty(size * n) for n in (7, 2)]
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        for tensor, out in zip(few, gathered):
            dist.all_gather_into_tensor(out, tensor)
    manager.wait()
    assert all((out == 1).all() for out in gathered)
    dist.all_reduce_coalesced(few)
    dist.all_reduce_coalesced(counts, async_op=True).wait()
    assert all((tensor == size).all() for tensor in few) and all((tensor == 2 * size).all() for tensor in counts)
    right, left = (rank + 1) % size, (rank - 1) % size
    boxes, mail = [torch.empty(50_000) for _ in range(3)], [torch.full((50_000,), float(10 * rank + i)) for i in range(3)]
    works = dist.batch_isend_irecv([dist.P2POp(dist.irecv, box, left, tag=i) for i, box in enumerate(boxes)]
                                   + [dist.P2POp(dist.isend, letter, right, tag=i) for i, letter in enumerate(mail)])
    for work in works:
        work.wait()
    assert all((box == 10 * left + i).all() for i, box in enumerate(boxes))


def test_coalescing():
    groups.run(3, coalesced)


def sub_groups():
    rank, size = dist.get_rank(), dist.get_world_size()
    ends = dist.new_group([size - 1, 0])
    if rank in (0, size - 1):
        x = torch.tensor([float(rank)])
        dist.all_reduce(x, group=ends)
        assert x == size - 1
    mesh = dist.init_device_mesh("cpu", (size, 1), mesh_dim_names=("rows", "columns"))
    x = torch.ones(1)
    dist.all_reduce(x, group=mesh.get_group("rows"))
    assert x == size
    hasty = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if rank == 0:
        with pytest.raises(RuntimeError, match="timeout"):
            dist.barrier(group=hasty)
    box = torch.zeros(1)
    if rank == 0:
        source = [dist.recv(box) for _ in range(size - 1)]
        assert sorted(source) == list(range(1, size))
    else:
        dist.send(torch.tensor([float(rank)]), 0)
    dist.destroy_process_group(ends)
    dist.barrier()


def test_sub_groups():
    groups.run(3, sub_groups)
