"""Every operation on real ranks, compared with what NumPy computes from all ranks' inputs."""

import medley
import numpy as np
import ranks

DTYPES = ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def inputs(dtype, size, count):
    """All ranks' inputs: small integers, so that every order of summation gives the same result."""
    return [np.random.default_rng(rank).integers(0, 2, count).astype(dtype) for rank in range(size)]


def collectives(dtype):
    rank, size = medley.get_rank(), medley.get_size()
    everyone = inputs(dtype, size, 6 * size)
    mine = everyone[rank]
    stacked = np.stack(everyone)

    reduced = mine.copy()
    medley.all_reduce("auto", reduced, "max")
    np.testing.assert_array_equal(reduced, stacked.max(axis=0))
    if dtype != "bool":
        out = np.zeros_like(mine)
        medley.all_reduce("shm", mine, "sum", out=out)
        np.testing.assert_array_equal(out, stacked.sum(axis=0, dtype=dtype))
        part = np.zeros(6, dtype)
        medley.reduce_scatter("auto", mine, part, "sum")
        np.testing.assert_array_equal(part, stacked.sum(axis=0, dtype=dtype)[6 * rank:6 * rank + 6])

    gathered = np.zeros((size, 6 * size), dtype)
    medley.all_gather("auto", mine, gathered)
    np.testing.assert_array_equal(gathered, stacked)
    exchanged = np.zeros_like(mine)
    medley.all_to_all("auto", mine, exchanged)
    np.testing.assert_array_equal(exchanged, np.concatenate([x[6 * rank:6 * rank + 6] for x in everyone]))

    root = size - 1
    copy = mine.copy()
    medley.broadcast("auto", copy, root)
    np.testing.assert_array_equal(copy, everyone[root])
    at_root = np.zeros_like(stacked) if rank == root else None
    medley.gather("auto", mine, at_root, root)
    if rank == root:
        np.testing.assert_array_equal(at_root, stacked)
    part = np.zeros(6, dtype)
    medley.scatter("auto", part, mine if rank == root else None, root)
    np.testing.assert_array_equal(part, everyone[root][6 * rank:6 * rank + 6])
    total = mine.copy()
    medley.reduce("auto", total, root, "min")
    if rank == root:
        np.testing.assert_array_equal(total, stacked.min(axis=0))


def all_dtypes():
    medley.init()
    for dtype in DTYPES:
        collectives(dtype)
    medley.finalize()


def test_collectives_of_every_type():
    ranks.run(2, all_dtypes)


def v_collectives():
    medley.init()
    rank, size = medley.get_rank(), medley.get_size()
    counts = [r + 1 for r in range(size)]
    mine = np.full(counts[rank], float(rank))
    everyone = np.concatenate([np.full(c, float(r)) for r, c in enumerate(counts)])
    out = np.zeros(sum(counts))
    medley.all_gatherv("auto", mine, out, counts)
    np.testing.assert_array_equal(out, everyone)
    spaced = np.full(4 * size, -1.0)
    medley.all_gatherv("auto", mine, spaced, counts, offsets=[4 * r for r in range(size)])
    for r, c in enumerate(counts):
        np.testing.assert_array_equal(spaced[4 * r:4 * r + 4], [float(r)] * c + [-1.0] * (4 - c))
    at_root = np.zeros(sum(counts)) if rank == 0 else None
    medley.gatherv("auto", mine, at_root, counts)
    part = np.zeros(counts[rank])
    medley.scatterv("auto", part, at_root, counts)
    np.testing.assert_array_equal(part, mine)
    part = np.zeros(counts[rank])
    medley.reduce_scatterv("auto", everyone, part, counts)
    np.testing.assert_array_equal(part, mine * size)
    sent = np.arange(float(size * counts[rank]))
    got = np.zeros(sum(counts))
    medley.all_to_allv("auto", sent, [counts[rank]] * size, got, counts)
    np.testing.assert_array_equal(got, np.concatenate([np.arange(c * rank, c * rank + c, dtype=float) for c in counts]))
    medley.finalize()


def test_v_forms():
    ranks.run(3, v_collectives)


def messages():
    medley.init()
    rank, size = medley.get_rank(), medley.get_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    out, got = np.full(1000, rank), np.zeros(1000, dtype=int)
    medley.sendrecv("auto", out, right, got, left)
    assert (got == left).all()
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            box = np.zeros(1, dtype=int)
            source = medley.recv("auto", box, medley.ANY_SOURCE, tag=5)
            assert box[0] == source * 10
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        medley.send("auto", np.array([rank * 10]), 0, tag=5)
    boxes = [np.zeros(2) for _ in range(size)]
    mail = [np.full(2, float(rank)) for _ in range(size)]
    medley.batch("auto", [m for r in range(size) if r != rank
                          for m in (medley.incoming(boxes[r], r), medley.outgoing(mail[r], r))])
    assert all((boxes[r] == r).all() for r in range(size) if r != rank)
    medley.finalize()


def test_messages():
    ranks.run(3, messages)


def async_and_groups():
    medley.init()
    rank, size = medley.get_rank(), medley.get_size()
    for _ in range(50):   # works that nobody keeps: the arrays must live until the operation completes
        medley.all_reduce("auto", np.ones(50_000, dtype=np.float32), async_op=True)
    kept = np.ones(50_000, dtype=np.float32)
    work = medley.all_reduce("auto", kept, async_op=True)
    medley.synchronize()
    assert work.complete and (kept == size).all()
    pair = medley.new_group([2, 0])
    assert (pair is None) == (rank == 1)
    if pair is not None:
        assert pair.size == 2 and pair.rank == (0 if rank == 2 else 1)
        x = np.array([rank])
        medley.all_reduce("auto", x, group=pair)
        assert x[0] == 2
    half = medley.split(rank % 2)
    assert medley.get_size(half) == (2 if rank % 2 == 0 else 1)
    medley.finalize()


def test_async_and_groups():
    ranks.run(3, async_and_groups)


def fused():
    medley.init()
    rank, size = medley.get_rank(), medley.get_size()
    arrays = [np.full(n, rank + 1.0) for n in (1, 300, 5)] + [np.full(4, rank, np.int64)]
    medley.all_reduce("auto", arrays)
    for array in arrays[:3]:
        np.testing.assert_array_equal(array, np.full_like(array, size * (size + 1) / 2))
    np.testing.assert_array_equal(arrays[3], size * (size - 1) // 2)
    parts = [np.zeros((size, 2)), np.zeros((size, 3), np.int8)]
    medley.all_gather("auto", [np.full(2, float(rank)), np.full(3, rank, np.int8)], parts)
    for part in parts:
        np.testing.assert_array_equal(part[:, 0], np.arange(size))
    for group in (None, medley.world().dup(fuse=True)):
        many = [np.ones(n % 9) for n in range(50)]
        with medley.fuse(group):
            works = [medley.all_reduce("auto", array, group=group, async_op=True) for array in many]
        more = [medley.all_reduce("auto", array, group=group, async_op=True) for array in many]
        for work in works + more:
            work.wait()
        for array in many:
            np.testing.assert_array_equal(array, np.full_like(array, size * size))
    medley.finalize()


def test_fused():
    ranks.run(3, fused)
