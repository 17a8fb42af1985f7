"""A rank that comes late to a collective whose sizes differ from rank to rank: the others wait, and every rank gets the right data.

The delays do not synchronise; they are the fault under test: around the tenth of a second after which a blocking call
returns to Python to check for Ctrl-C and continues as an asynchronous operation."""

import itertools
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

import groups
import pytest
import torch
import torch.distributed as dist

import medley.torch

DELAYS = (0.05, 0.15, 0.5)


def filled(count, value):
    return torch.full((count,), float(value))


def finish(asynchronous, work):
    if asynchronous:
        work.wait()


def all_to_all_single(rank, size, draw, asynchronous):
    splits = [[draw(0, 2000) for _ in range(size)] for _ in range(size)]
    out = filled(sum(splits[peer][rank] for peer in range(size)), -1)
    given = torch.cat([filled(splits[rank][peer], 10 * rank + peer) for peer in range(size)])
    finish(asynchronous, dist.all_to_all_single(out, given, [splits[peer][rank] for peer in range(size)], splits[rank],
                                                async_op=asynchronous))
    return torch.equal(out, torch.cat([filled(splits[peer][rank], 10 * peer + rank) for peer in range(size)]))


def all_to_all(rank, size, draw, asynchronous):
    splits = [[draw(0, 2000) for _ in range(size)] for _ in range(size)]
    outs = [filled(splits[peer][rank], -1) for peer in range(size)]
    finish(asynchronous, dist.all_to_all(outs, [filled(splits[rank][peer], 10 * rank + peer) for peer in range(size)],
                                         async_op=asynchronous))
    return all(torch.equal(out, filled(len(out), 10 * peer + rank)) for peer, out in enumerate(outs))


def all_gather(rank, size, draw, asynchronous):
    counts = [draw(1, 3000) for _ in range(size)]
    outs = [filled(count, -1) for count in counts]
    finish(asynchronous, dist.all_gather(outs, filled(counts[rank], rank), async_op=asynchronous))
    return all(torch.equal(out, filled(counts[peer], peer)) for peer, out in enumerate(outs))


def all_gather_object(rank, size, draw, asynchronous):
    lengths = [draw(1, 3000) for _ in range(size)]
    outs = [None] * size
    dist.all_gather_object(outs, "x" * lengths[rank])
    return [len(out) for out in outs] == lengths


def reduce_scatter(rank, size, draw, asynchronous):
    counts = [draw(1, 3000) for _ in range(size)]
    out = filled(counts[rank], -1)
    finish(asynchronous, dist.reduce_scatter(out, [filled(count, rank + 1) for count in counts], async_op=asynchronous))
    return torch.equal(out, filled(counts[rank], size * (size + 1) / 2))


def gather(rank, size, draw, asynchronous):
    root, count = draw(0, size - 1), draw(1, 3000)
    outs = [filled(count, -1) for _ in range(size)] if rank == root else None
    finish(asynchronous, dist.gather(filled(count, rank), outs, dst=root, async_op=asynchronous))
    return rank != root or all(torch.equal(out, filled(count, peer)) for peer, out in enumerate(outs))


def scatter(rank, size, draw, asynchronous):
    root, count = draw(0, size - 1), draw(1, 3000)
    out = filled(count, -1)
    given = [filled(count, peer) for peer in range(size)] if rank == root else None
    finish(asynchronous, dist.scatter(out, given, src=root, async_op=asynchronous))
    return torch.equal(out, filled(count, rank))


def sparse_all_reduce(rank, size, draw, asynchronous):
    rows = [draw(0, 50) for _ in range(size)]
    mine = torch.sparse_coo_tensor([list(range(rows[rank]))], torch.ones(rows[rank], 3), (50, 3))
    finish(asynchronous, dist.all_reduce(mine, async_op=asynchronous))
    expected = torch.stack([filled(3, sum(row < count for count in rows)) for row in range(50)])
    return torch.equal(mine.to_dense(), expected)


OPERATIONS = (all_to_all_single, all_to_all, all_gather, all_gather_object, reduce_scatter, gather, scatter, sparse_all_reduce)


def with_a_late_rank(backend, asynchronous, delays):
    """Every rank is late by every delay for every operation. The ranks in time overwrite freed memory meanwhile, as programs do."""
    rank, size = dist.get_rank(), dist.get_world_size()
    random_of_all = random.Random(18)
    wrong = []
    with medley.torch.route(f"*={backend}"):
        for operation, late, delay in itertools.product(OPERATIONS, range(size), delays):
            dist.barrier()
            if rank == late:
                time.sleep(delay)
            junk = [list(range(i, 200 + i)) for i in range(50)]
            if not operation(rank, size, random_of_all.randint, asynchronous):
                wrong.append((operation.__name__, late, delay))
            del junk
    return wrong


BACKENDS = ("auto", "shm", "gloo", "ucx")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_v_collective_with_a_late_rank(backend, asynchronous):
    assert groups.run(3, with_a_late_rank, backend, asynchronous, DELAYS) == [[]] * 3


MPI = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"], "mpich": ["mpirun.mpich"]}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("library", MPI)
def test_every_v_collective_over_mpi_with_a_late_rank(library, asynchronous):
    """mpi is available only to ranks that its own launcher started."""
    if shutil.which(MPI[library][0]) is None:
        pytest.skip(f"{library} is not installed")
    here = pathlib.Path(__file__)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here.parent.parent), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([*MPI[library], "-np", "3", sys.executable, str(here), "mpi", "async" if asynchronous else "blocking"],
                          capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0 and done.stdout.count("all right") == 3, done.stdout[-2000:] + done.stderr[-2000:]


def test_a_part_with_a_late_rank():
    """For every ./test: the default routes and the most revealing delay."""
    assert groups.run(3, with_a_late_rank, "auto", False, DELAYS[1:2]) == [[]] * 3


if __name__ == "__main__":
    dist.init_process_group("medley")
    wrong = with_a_late_rank(sys.argv[1], sys.argv[2] == "async", DELAYS)
    dist.destroy_process_group()
    print(wrong or "all right", flush=True)
