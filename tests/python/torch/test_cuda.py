"""CUDA tensors: streams wait instead of the host, memory is not reused too early, futures carry streams. On a machine
with a GPU, which the ranks share; tests/gpu/torch sets that up."""

import datetime
import os

import groups
import pytest
import ranks
import torch
import torch.distributed as dist

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

ROUTES = ["nccl", "shm"]   # in streams, and by the host through pinned memory


def on_gpu(function, *arguments):
    """In a rank: its own NCCL_HOSTID lets ranks share the GPU."""
    os.environ["NCCL_HOSTID"] = f"rank{os.environ['RANK']}"
    torch.cuda.set_device(0)
    return groups._in_group(function, 60, arguments)


def run(size, function, *arguments, **options):
    return ranks.run(size, on_gpu, function, *arguments, **options)


def routed(route):
    import medley.torch
    return medley.torch.route(f"*={route}")


def long_kernel(milliseconds=300):
    torch.cuda._sleep(int(milliseconds * 1.5e6))   # in cycles; the clock is below 2 GHz


def stream_order(route):
    rank, size = dist.get_rank(), dist.get_world_size()
    warm = False
    with routed(route):
        for count in (1, 1000, 1 << 20):
            for own_stream in (False, False, True, True):
                stream = torch.cuda.Stream() if own_stream else torch.cuda.current_stream()
                with torch.cuda.stream(stream):
                    tensor = torch.zeros(count, device="cuda")
                    long_kernel()
                    mark = torch.cuda.Event()
                    mark.record()
                    tensor.add_(rank + 1)            # after the long kernel
                    work = dist.all_reduce(tensor, async_op=True)
                    issued_before = not mark.query()
                    work.wait()
                    waited_before = not mark.query()
                    seen = tensor * 2                # in the stream, without involving the host
                    assert (seen == size * (size + 1)).all().item(), (route, count, own_stream)
                    if warm:                         # CUDA loads a kernel on first use, and waits for that
                        assert issued_before, "issuing waited for the long kernel"
                        assert waited_before or route != "nccl", "wait() waited on the host"
                    warm = True
        torch.cuda.synchronize()
        # waited for in another stream than that of the issue
        tensor, other = torch.zeros(1 << 18, device="cuda"), torch.cuda.Stream()
        long_kernel()
        tensor.add_(rank + 1)
        work = dist.all_reduce(tensor, async_op=True)
        with torch.cuda.stream(other):
            work.wait()
            seen = tensor.clone()
            assert (seen == size * (size + 1) / 2).all().item()
        torch.cuda.synchronize()


@pytest.mark.parametrize("route", ROUTES)
def test_operations_follow_the_current_stream_and_wait_orders_it(route):
    run(2, stream_order, route)


def every_operation(route):
    rank, size = dist.get_rank(), dist.get_world_size()
    def full(value, *shape):
        return torch.full(shape or (6,), float(value), device="cuda")
    with routed(route):
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.uint8):
            tensor = full(rank + 1).to(dtype)
            dist.all_reduce(tensor)
            assert (tensor == size * (size + 1) // 2).all()
        tensor = full(rank)
        dist.broadcast(tensor, size - 1)
        assert (tensor == size - 1).all()
        tensor = full(rank + 1)
        dist.reduce(tensor, 0, op=dist.ReduceOp.MAX)
        assert rank != 0 or (tensor == size).all()
        list_of = [full(-1) for _ in range(size)]                 # copied back from one flat tensor, in a stream
        dist.all_gather(list_of, full(rank))
        assert all((part == r).all() for r, part in enumerate(list_of))
        uneven = [full(-1, r + 1) for r in range(size)]
        dist.all_gather(uneven, full(rank, rank + 1))
        assert all((part == r).all() for r, part in enumerate(uneven))
        flat = full(-1, size * 3)
        dist.all_gather_into_tensor(flat, full(rank, 3))
        assert torch.equal(flat, torch.arange(size, device="cuda").repeat_interleave(3).float())
        out = full(-1, 2)
        dist.reduce_scatter_tensor(out, full(rank + 1, 2 * size))
        assert (out == size * (size + 1) / 2).all()
        dist.reduce_scatter(out, [full(rank + r, 2) for r in range(size)])
        assert (out == sum(r + rank for r in range(size))).all()
        rows = torch.cat([full(10 * rank + r, r + 1, 2) for r in range(size)])
        got = full(-1, (rank + 1) * size, 2)
        dist.all_to_all_single(got, rows, [rank + 1] * size, [r + 1 for r in range(size)])
        assert torch.equal(got, torch.cat([full(10 * r + rank, rank + 1, 2) for r in range(size)]))
        parts = [full(-1) for _ in range(size)] if rank == 0 else None
        dist.gather(full(rank), parts, 0)
        assert rank != 0 or all((part == r).all() for r, part in enumerate(parts))
        one = full(-1)
        dist.scatter(one, [full(r) for r in range(size)] if rank == 0 else None, 0)
        assert (one == rank).all()
        column = full(rank + 1, 5, 4)[:, 1]                       # not contiguous
        dist.all_reduce(column)
        assert (column == size * (size + 1) / 2).all()
        right, left = (rank + 1) % size, (rank - 1) % size
        given, taken = full(rank, 1 << 16), full(-1, 1 << 16)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, taken, left), dist.P2POp(dist.isend, given, right)]):
            work.wait()
        assert (taken == left).all()
        given, taken = full(rank + 7), full(-1)
        (dist.send(given, 1), dist.recv(taken, 1)) if rank == 0 else (dist.recv(taken, 0), dist.send(given, 0)) if rank == 1 else None
        assert rank > 1 or (taken == 8 - rank).all()
        with dist._coalescing_manager(group=dist.group.WORLD, device=torch.device("cuda"), async_ops=True) as together:
            tensors = [full(rank + i) for i in range(3)]
            for tensor in tensors:
                dist.all_reduce(tensor)
        together.wait()
        assert all((tensor == sum(r + i for r in range(size))).all() for i, tensor in enumerate(tensors))
        dist.barrier()
        sparse = torch.sparse_coo_tensor([[rank, size]], [1.0, 1.0], (size + 1,), device="cuda")
        dist.all_reduce(sparse)
        assert torch.equal(sparse.to_dense().cpu(), torch.tensor([1.0] * size + [float(size)]))


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("size", [2, 4])
def test_every_operation(size, route):
    run(size, every_operation, route)


def allocator(route):
    """Memory freed while an operation runs must not be reused before it completes."""
    rank, size = dist.get_rank(), dist.get_world_size()
    with routed(route):
        dist.all_reduce(torch.ones(1, device="cuda"))
        count = 1 << 20
        for turn in range(8):
            long_kernel(20)
            out = torch.empty(count * size, device="cuda")
            work = dist.all_gather_into_tensor(out, torch.full((count,), float(rank + turn), device="cuda"), async_op=True)
            noise = [torch.full((count,), -1.0, device="cuda") for _ in range(4)]   # would land in the freed input
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                work.wait()                          # not the stream of the issue
                seen = out.view(size, count).mean(1)
            del out, work
            more = torch.full((count * size,), -1.0, device="cuda")                  # and in the freed output
            torch.cuda.current_stream().wait_stream(side)
            assert torch.equal(seen, torch.arange(size, device="cuda") + float(turn)), (turn, seen)
            del noise, more
        # nobody waits: the tensors are kept alive all the same
        kept = torch.zeros(count, device="cuda")
        for _ in range(40):
            dist.all_reduce(torch.ones(count, device="cuda"), async_op=True)
        dist.all_reduce(kept, async_op=True).wait()
        torch.cuda.synchronize()
        # after a wait, they are freed at once
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        for _ in range(20):
            dist.all_reduce(torch.ones(count, device="cuda"))
        if route == "nccl":
            assert torch.cuda.memory_allocated() - before <= 2 * count * 4


@pytest.mark.parametrize("route", ROUTES)
def test_memory_is_not_given_out_too_early(route):
    run(2, allocator, route)


def futures(route):
    rank, size = dist.get_rank(), dist.get_world_size()
    total = size * (size + 1) / 2
    with routed(route):
        for _ in range(3):
            tensor = torch.zeros(1 << 18, device="cuda")
            long_kernel(100)
            tensor.add_(rank + 1)
            future = dist.all_reduce(tensor, async_op=True).get_future()
            doubled = future.then(lambda done: done.value()[0] * 2)     # runs on its own streams
            assert (doubled.wait() == 2 * total).all().item()
            assert (future.wait()[0] == total).all().item()
        lists = [torch.empty(100, device="cuda") for _ in range(size)]
        future = dist.all_gather(lists, torch.full((100,), float(rank), device="cuda"), async_op=True).get_future()
        assert all((part == r).all().item() for r, part in enumerate(future.wait()))
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32).cuda(), bucket_cap_mb=0.001)

        def hook(state, bucket):
            work = dist.all_reduce(bucket.buffer() / size, async_op=True)
            return work.get_future().then(lambda done: done.value()[0])

        model.register_comm_hook(None, hook)
        model(torch.full((4, 32), float(rank), device="cuda")).sum().backward()
        assert torch.allclose(model.module.weight.grad, torch.full((32, 32), 4 * (size - 1) / 2, device="cuda"))


@pytest.mark.parametrize("route", ROUTES)
def test_futures_carry_streams(route):
    run(2, futures, route)


def both_memories():
    rank, size = dist.get_rank(), dist.get_world_size()
    host, device = torch.full((5,), float(rank)), torch.full((5,), float(rank), device="cuda")
    works = [dist.all_reduce(host, async_op=True), dist.all_reduce(device, async_op=True)]
    for work in works:
        work.wait()
    assert torch.equal(host, device.cpu()) and (host == size * (size - 1) / 2).all()
    everyone = [None] * size
    dist.all_gather_object(everyone, {"rank": rank})
    assert [each["rank"] for each in everyone] == list(range(size))
    group = dist.new_group(backend="cpu:medley,cuda:medley")
    dist.all_reduce(device, group=group)
    dist.all_reduce(host, group=group)
    assert torch.equal(host, device.cpu())
    mesh = dist.device_mesh.init_device_mesh("cuda", (size,))
    dist.all_reduce(device, group=mesh.get_group())
    with pytest.raises(RuntimeError, match="cuda:0 and cpu|cpu and cuda:0"):
        dist.all_gather_into_tensor(torch.empty(5 * size), device)
    with pytest.raises(RuntimeError, match="meta"):
        dist.group.WORLD._get_backend(torch.device("cuda")).allreduce([torch.empty(3, device="meta")])


def test_one_group_serves_both_memories():
    run(2, both_memories)


def timeouts(route):
    rank = dist.get_rank()
    with routed(route):
        tensor = torch.ones(10, device="cuda")
        work = dist.all_reduce(tensor, async_op=True)
        assert work.wait(datetime.timedelta(seconds=30)) and work.is_completed() and work.is_success()
        long_kernel(300)
        tensor.add_(1)
        mark = torch.cuda.Event()
        mark.record()
        dist.barrier(device_ids=[0])
        assert mark.query(), "the barrier came before what was in the stream"
        work = dist.barrier(async_op=True)
        work.wait()


@pytest.mark.parametrize("route", ROUTES)
def test_timeouts_and_barriers_wait_on_the_host(route):
    run(2, timeouts, route)


def replaced():
    os.environ["NCCL_HOSTID"] = f"rank{os.environ['RANK']}"
    import medley.torch
    medley.torch.replace("nccl")
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    assert dist.get_backend() == "nccl"
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    assert isinstance(backend, medley.torch.ProcessGroupMedley)
    tensor = torch.ones(10, device="cuda")
    dist.all_reduce(tensor)
    assert (tensor == dist.get_world_size()).all()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[0])
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    half = dist.new_group([0])
    if dist.get_rank() == 0:
        dist.all_reduce(tensor, group=half)
    dist.barrier()
    dist.destroy_process_group()


def test_programs_that_name_nccl_run_unchanged():
    ranks.run(2, replaced)


def captured():
    """Captured in a graph, like nccl's own operations; staged ones are rejected."""
    rank, size = dist.get_rank(), dist.get_world_size()
    tensor = torch.full((1000,), float(rank + 1), device="cuda")
    dist.all_reduce(tensor)
    torch.cuda.synchronize()
    dist.barrier()
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    tensor.fill_(rank + 1)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        dist.all_reduce(tensor)
        tensor.mul_(2)
    for _ in range(2):
        tensor.fill_(rank + 1)
        graph.replay()
        assert (tensor == size * (size + 1)).all().item()


def test_a_graph_can_capture_operations_over_nccl():
    run(2, captured)


def wrong_device():
    os.environ["NCCL_HOSTID"] = f"rank{os.environ['RANK']}"
    import medley.torch  # noqa: F401
    store = dist.HashStore()
    group = medley.torch._c10d.create(store, 0, 1, "alone", [], 30.0, medley.torch.Options(backends=["shm"]), 1)
    with pytest.raises(RuntimeError, match="cuda:0, but this process group uses cuda:1"):
        group.allreduce([torch.ones(3, device="cuda:0")])


def test_a_tensor_on_another_device_is_refused():
    ranks.run(1, wrong_device, timeout=60)
