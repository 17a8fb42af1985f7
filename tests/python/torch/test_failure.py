"""Failures in training are raised on every surviving rank in time, and forked workers do no harm."""

import os
import signal
import subprocess
import sys
import threading
import time

import groups
import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import medley


def mismatch():
    with pytest.raises(RuntimeError) as caught:
        dist.all_reduce(torch.zeros(4 + dist.get_rank()))
    return type(caught.value).__name__, str(caught.value)


def test_mismatched_shapes_are_told_to_everyone():
    for rank, (kind, said) in enumerate(groups.run(2, mismatch)):
        assert kind == "Mismatch" and "all_reduce" in said
        first, second = (rank, 1 - rank) if "says" not in said else (1 - rank, rank)   # which rank detected it
        assert f"this rank has {4 + first} elements and rank {second} has {4 + second}" in said, said


def leave_early():
    if dist.get_rank() == 1:
        return None
    with pytest.raises(medley.RankLost) as caught:
        dist.all_reduce(torch.zeros(4))
    return str(caught.value)


def test_a_rank_that_left_is_named_in_words_of_torch():
    said, _ = groups.run(2, leave_early)
    assert "rank 1 left: its process ended, or it called destroy_process_group" in said, said


def wrong_tensors():
    with pytest.raises(RuntimeError):   # torch's dispatcher refuses it
        dist.all_reduce(torch.eye(4).to_sparse_csr())
    with pytest.raises(medley.Invalid, match="all_gather_into_tensor: got tensors of types"):
        dist.all_gather_into_tensor(torch.zeros(4, dtype=torch.int64), torch.zeros(2))
    with pytest.raises(RuntimeError, match="elements"):
        dist.all_gather_into_tensor(torch.zeros(5), torch.zeros(2))
    with pytest.raises(medley.Invalid, match="all_to_all_single: 3 input split sizes for 2 ranks"):
        dist.all_to_all_single(torch.zeros(4), torch.zeros(3), None, [1, 1, 1])
    with pytest.raises(medley.Invalid, match="all_to_all: got a list of 1 tensors for 2 ranks"):
        dist.all_to_all([torch.zeros(1)], [torch.zeros(1)])
    with pytest.raises(medley.Invalid, match="send: a tag cannot be negative"):
        dist.send(torch.zeros(1), 1 - dist.get_rank(), tag=-1)
    dist.barrier()


def test_wrong_tensors_are_refused():
    groups.run(2, wrong_tensors)


def train_until_one_dies():
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]), bucket_cap_mb=0.01)
    if dist.get_rank() == 1:
        model.register_comm_hook(None, die_in_the_third_step)
    else:
        model.register_comm_hook(None, plain_hook)
    with pytest.raises(RuntimeError) as caught:          # torch's own, because a callback in Python got the error
        for _ in range(50):
            model.zero_grad()
            model(torch.ones(2, 64)).sum().backward()
    return str(caught.value)


def fail_in_plain_ddp():
    """Without a hook only torch's C++ issues the operations and waits for them."""
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.ones(2, 4)).sum().backward()
    if dist.get_rank() == 0:                             # fails at issue; on the other rank while waiting
        dist.recv(torch.zeros(1), 1)
        dist.distributed_c10d._get_default_group().abort()
    else:
        dist.send(torch.zeros(1), 0)
    with pytest.raises(medley.Error) as caught:
        model(torch.ones(2, 4)).sum().backward()
    return type(caught.value).__name__, caught.value.comm


def test_errors_keep_their_class_and_attributes_through_autograd():
    assert groups.run(2, fail_in_plain_ddp) == [("Aborted", "world")] * 2


DIES_UNDER_TORCHRUN = """
import os, signal, time, torch, torch.distributed as dist, medley.torch
dist.init_process_group("medley")
dist.all_reduce(torch.ones(4))
if dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(100)                       # the survivors compute when torchrun ends them
"""


def test_survivors_of_a_killed_rank_say_so_under_torchrun(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(DIES_UNDER_TORCHRUN)
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3",
                           "--monitor-interval", "2", str(program)], capture_output=True, text=True, timeout=100)
    assert done.returncode != 0
    told = sorted(line.rpartition(": ")[0] for line in done.stderr.splitlines() if line.startswith("medley: "))
    assert told == ["medley: rank 0: rank 1 was lost", "medley: rank 2: rank 1 was lost"], done.stderr


calls = 0


def plain_hook(state, bucket):
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0])


def die_in_the_third_step(state, bucket):
    global calls
    calls += 1
    if calls == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return plain_hook(state, bucket)


def test_a_rank_killed_in_the_middle_of_ddp_is_told_to_the_others():
    said = groups.run(3, train_until_one_dies, may_die=(1,))
    assert "rank 1" in said[0] and "rank 1" in said[2], said


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.tensor([float(index) ** 2])


def load_with_forked_workers():
    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    total = torch.zeros(1)
    for _ in range(2):
        for batch in loader:
            dist.all_reduce(batch)
            total += batch.sum()
    return total.item()


def test_workers_forked_after_init():
    assert groups.run(2, load_with_forked_workers) == [2 * 2 * sum(i ** 2 for i in range(16))] * 2


def interrupted(asynchronous):
    tensor = torch.ones(4)
    if dist.get_rank() == 1:
        dist.recv(torch.zeros(1), 0)                     # until rank 0 has been interrupted
        dist.all_reduce(tensor)
        return tensor.tolist()
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work = dist.all_reduce(tensor, async_op=asynchronous)
        work.wait()
    assert time.monotonic() - began < 30                 # the group's timeout is 60
    dist.send(torch.zeros(1), 1)
    while tensor[0] != 2:                                # it continues, and its tensor stays
        time.sleep(0.01)
    return tensor.tolist()


@pytest.mark.parametrize("asynchronous", [True, False])
def test_ctrl_c_ends_a_wait(asynchronous):
    assert groups.run(2, interrupted, asynchronous) == [[2.0] * 4] * 2


def abort_a_group():
    if dist.get_rank() == 1:
        with pytest.raises(RuntimeError):
            dist.recv(torch.zeros(1), 0)                 # ends with the group
        return True
    work = dist.all_reduce(torch.ones(4), async_op=True)
    dist.distributed_c10d._get_default_group().abort()
    with pytest.raises(RuntimeError):
        work.wait()
    return True


def test_an_aborted_group_ends_what_is_pending_on_all_ranks():
    assert groups.run(2, abort_a_group) == [True, True]
