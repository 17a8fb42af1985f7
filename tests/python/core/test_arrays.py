"""Which arrays are accepted, without a copy, and which are rejected with an error."""

import array

import medley
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def job():
    medley.init(["shm"])
    yield
    medley.finalize()


@pytest.mark.parametrize("make", [lambda: bytearray(8), lambda: memoryview(bytearray(8)), lambda: array.array("f", [0, 1]),
                                  lambda: np.zeros((2, 3)), lambda: np.zeros(()), lambda: np.zeros((3, 0)),
                                  lambda: np.zeros((4, 1))[::1, ::-1], lambda: np.zeros(10)[2:5]])
def test_contiguous_memory_of_any_kind_is_taken(make):
    medley.broadcast("auto", make())


def test_no_copy_is_made():
    x, y = np.arange(4.0), np.zeros(8)
    medley.all_to_all("auto", x, y[2:6])
    np.testing.assert_array_equal(y, [0, 0, 0, 1, 2, 3, 0, 0])


def test_a_read_only_array_may_be_sent_but_not_written():
    fixed = np.arange(4.0)
    fixed.flags.writeable = False
    out = np.zeros(4)
    medley.all_reduce("auto", fixed, out=out)
    np.testing.assert_array_equal(out, fixed)
    with pytest.raises(medley.Invalid, match="read-only"):
        medley.all_reduce("auto", fixed)
    with pytest.raises(medley.Invalid, match="read-only"):
        medley.all_gather("auto", out, b"12345678" * 4)


@pytest.mark.parametrize("bad, says", [(np.zeros((4, 4))[:, :2], "not contiguous"), (np.zeros((2, 3)).T, "not contiguous"),
                                       (np.zeros(4)[::-1], "not contiguous"), ([1, 2], "int offers neither"),
                                       (np.zeros(2, complex), "complex128"), (np.zeros(2, np.uint32), "uint32"),
                                       (None, "NoneType")])
def test_what_cannot_be_used_is_refused(bad, says):
    with pytest.raises(medley.Invalid, match=says):
        medley.all_reduce("auto", bad)


def test_wrong_arguments_are_refused():
    with pytest.raises(medley.Invalid, match="median"):
        medley.all_reduce("auto", np.zeros(2), "median")
    with pytest.raises(medley.Unavailable, match="pigeon"):
        medley.all_reduce("pigeon", np.zeros(2))
    with pytest.raises(medley.Invalid, match="root 3"):
        medley.broadcast("auto", np.zeros(2), 3)
    with pytest.raises(medley.Invalid, match="f64"):
        medley.all_reduce("auto", np.zeros(2), out=np.zeros(2, np.float32))
    with pytest.raises(TypeError):
        medley.all_reduce("auto", np.zeros(2), colour="blue")


def test_tensors_are_taken():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool):
        x, y = torch.ones(5, dtype=dtype), torch.zeros(5, dtype=dtype)
        medley.all_gather("auto", x, y)
        assert torch.equal(x, y)
    with pytest.raises(medley.Invalid, match="not contiguous"):
        medley.broadcast("auto", torch.zeros(3, 4).t())
