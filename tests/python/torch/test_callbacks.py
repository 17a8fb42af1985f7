"""Callbacks of futures: they may wait for other futures and issue operations, and block nothing else."""

import os
import pathlib
import subprocess
import sys
import threading

import groups
import pytest
import ranks
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel


def sum_later(value=1.0):
    """The future of an all_reduce that is not complete yet, except on the first rank, which issues its part last."""
    tensor = torch.full((4,), value)
    if dist.get_rank() > 0:
        future = dist.all_reduce(tensor, async_op=True).get_future()
        dist.send(torch.zeros(1), 0)
        return future
    for peer in range(1, dist.get_world_size()):
        dist.recv(torch.zeros(1), peer)
    return dist.all_reduce(tensor, async_op=True).get_future()


def wait_in_callbacks():
    by_work, by_future, by_child = torch.ones(4), torch.ones(4), torch.ones(4)

    def wait_for_all(future):
        dist.all_reduce(by_work, async_op=True).wait()
        dist.all_reduce(by_future, async_op=True).get_future().wait()
        dist.all_reduce(by_child, async_op=True).get_future().then(lambda done: done.value()[0]).wait()
        return future.value()[0]

    total = sum_later().then(wait_for_all).wait()
    return [tensor[0].item() for tensor in (total, by_work, by_future, by_child)]


def test_a_callback_waits_for_works_and_futures():
    assert groups.run(3, wait_in_callbacks) == [[3.0] * 4] * 3


def nest(depth):
    """Each callback issues an operation and waits for the callback of that one."""
    if depth == 0:
        return 0
    future = dist.all_reduce(torch.ones(4), async_op=True).get_future()
    return 1 + future.then(lambda done: nest(depth - 1)).wait()


def test_sixty_four_nested_waits():
    assert groups.run(2, nest, 64) == [64, 64]


def wait_for_later_operations():
    """Callbacks of earlier operations wait for later ones: every future is completed while all callbacks before it block."""
    count = 64

    def wait_for_next(index):
        return futures[index + 1].wait()[0].clone() + 1 if index + 1 < count else torch.zeros(4)

    tensors = [torch.full((4,), float(index)) for index in range(count)]
    futures = [dist.all_reduce(tensor, async_op=True).get_future() for tensor in tensors]
    children = [future.then(lambda done, index=index: wait_for_next(index)) for index, future in enumerate(futures)]
    size = dist.get_world_size()
    return all(torch.equal(child.wait(), torch.full((4,), size * (index + 1.0) + 1)) for index, child in enumerate(children[:-1]))


def test_callbacks_wait_for_later_operations():
    assert groups.run(3, wait_for_later_operations) == [True] * 3


def train_with_power_sgd():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 4)))
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(dist.get_rank())
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(8, 20)).pow(2).mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]).tolist()


def test_power_sgd():
    first, *others = groups.run(3, train_with_power_sgd)
    assert all(torch.isfinite(torch.tensor(first)))
    assert others == [first] * 2


def order_and_errors():
    seen = []
    future = sum_later()
    future.add_done_callback(lambda done: seen.append(1))
    failing = future.then(lambda done: 1 / 0)
    future.add_done_callback(lambda done: seen.append(2))
    last = future.then(lambda done: seen.append(3))
    last.wait()
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        failing.wait()
    return seen, sum_later().wait()[0][0].item()


def test_callbacks_of_one_future_run_in_order_and_may_fail():
    assert groups.run(2, order_and_errors) == [([1, 2, 3], 2.0)] * 2


def where_callbacks_run():
    names = []
    future = sum_later()
    child = future.then(lambda done: names.append(pathlib.Path(f"/proc/self/task/{threading.get_native_id()}/comm").read_text().strip()))
    dist.barrier()                           # finds the operation complete, but must not run the callback
    child.wait()
    complete = dist.all_reduce(torch.ones(4), async_op=True)
    complete.wait()
    complete.get_future().then(lambda done: names.append(threading.current_thread() is threading.main_thread())).wait()
    return names


def test_callbacks_have_threads_of_their_own():
    """Callbacks of a complete future run where they are attached, as in torch."""
    assert groups.run(2, where_callbacks_run)[1] == ["medley-callback", True]


def callback_threads():
    return sum(1 for task in os.listdir("/proc/self/task")
               if pathlib.Path(f"/proc/self/task/{task}/comm").read_text().strip() == "medley-callback")


def threads_come_and_go():
    nest(8)
    many = callback_threads()
    ended = threading.Event()
    while callback_threads() > 0:            # otherwise the test's own deadline ends it
        ended.wait(0.1)
    nest(2)
    return many


def test_callback_threads_end_when_they_are_idle():
    """Callbacks of a complete future need no thread, so a rank that arrives second may have few."""
    assert max(groups.run(2, threads_come_and_go)) >= 4


def destroy_with_pending_callbacks():
    dist.init_process_group("medley")
    if dist.get_rank() == 0:                 # its futures are complete at once, so their callbacks run here
        sum_later()
        dist.barrier()
        dist.destroy_process_group()
        return "ended"
    seen, waiting = [], threading.Event()

    def wait_for_ever(done):
        waiting.set()
        with pytest.raises(RuntimeError):
            dist.recv(torch.zeros(1), 0)     # no rank sends it
        seen.append("ended")

    blocked = sum_later().then(wait_for_ever)
    never = dist.irecv(torch.zeros(4), 0, tag=7).get_future().then(lambda done: done.value())
    waiting.wait()
    dist.barrier()
    dist.destroy_process_group()
    blocked.wait()
    with pytest.raises(RuntimeError):
        never.wait()
    return seen[0]


def test_destroying_a_group_ends_what_its_callbacks_wait_for():
    assert ranks.run(2, destroy_with_pending_callbacks) == ["ended"] * 2


AT_EXIT = """
import sys, time, torch, torch.distributed as dist, medley.torch
dist.init_process_group("medley", init_method=sys.argv[1], rank=int(sys.argv[2]), world_size=2)
if sys.argv[2] == "0":
    dist.recv(torch.zeros(1), 1)
future = dist.all_reduce(torch.ones(4), async_op=True).get_future()
future.then(lambda done: (time.sleep(0.3), print("callback done", flush=True)))   # still runs when the program ends
if sys.argv[2] == "1":
    dist.send(torch.zeros(1), 0)
future.wait()
"""


def test_a_program_that_ends_waits_for_its_callbacks():
    address = f"tcp://127.0.0.1:{ranks.free_port()}"
    started = [subprocess.Popen([sys.executable, "-c", AT_EXIT, address, str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
               for rank in range(2)]
    for process in started:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out) == (0, "callback done\n"), err
