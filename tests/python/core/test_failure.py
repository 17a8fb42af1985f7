"""Failures are raised on every surviving rank, and Ctrl-C ends a wait."""

import os
import signal
import threading
import time

import medley
import numpy as np
import pytest
import ranks


def mismatch():
    medley.init()
    with pytest.raises(medley.Mismatch) as caught:
        medley.all_reduce("auto", np.zeros(4 + medley.get_rank()))
    return caught.value.op, caught.value.comm


def test_different_shapes_are_told_to_everyone():
    assert ranks.run(2, mismatch) == [("all_reduce", "world")] * 2


def timeout():
    medley.init()
    with pytest.raises(medley.Timeout) as caught:
        medley.recv("auto", np.zeros(1), 1 - medley.get_rank(), deadline=(0.2, 60)[medley.get_rank()])
    assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, medley.Error)
    return caught.value.ranks


def test_a_deadline_is_kept():
    assert ranks.run(2, timeout) == [[1], [1]]   # rank 0 waited for rank 1, and tells it so


def rank_dies():
    medley.init()
    if medley.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises((medley.RankLost, medley.Aborted)):
        for _ in range(1000):
            medley.all_reduce("auto", np.zeros(1000))
    return True


def test_a_dead_rank_is_told_to_the_others():
    assert ranks.run(3, rank_dies, may_die=(1,)) == [True, None, True]


def interrupted():
    medley.init()
    if medley.get_rank() == 0:
        box = np.zeros(1)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            medley.recv("auto", box, 1, deadline=60)
        assert time.monotonic() - began < 30
        medley.send("auto", np.zeros(1), 1, tag=1)      # the job still works
        medley.synchronize()                            # and the receive still pending
        assert box[0] == 7
    else:
        medley.recv("auto", np.zeros(1), 0, tag=1)
        medley.send("auto", np.array([7.0]), 0)


def test_ctrl_c_ends_a_wait():
    ranks.run(2, interrupted)


def other_threads_run():
    medley.init()
    if medley.get_rank() == 1:
        medley.recv("auto", np.zeros(1), 0)
    else:
        ticks = []
        counter = threading.Thread(target=lambda: ticks.extend(range(1000)))
        waiter = threading.Thread(target=lambda: medley.recv("auto", np.zeros(1), 1, tag=9, deadline=60))
        waiter.start()
        counter.start()
        counter.join(timeout=30)     # would wait for the receive if that kept the GIL
        assert len(ticks) == 1000 and waiter.is_alive()
        medley.send("auto", np.zeros(1), 1)
        medley.recv("auto", np.zeros(1), 1, tag=8)
        waiter.join()
        return
    medley.send("auto", np.zeros(1), 0, tag=8)
    medley.send("auto", np.zeros(1), 0, tag=9)


def test_a_wait_lets_other_threads_run():
    ranks.run(2, other_threads_run)


def forked_child_is_told():
    medley.init()
    child = os.fork()
    if child == 0:
        try:
            medley.barrier()
        except medley.Invalid as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    medley.barrier()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_is_told():
    assert ranks.run(2, forked_child_is_told) == [0, 0]


def test_calls_before_init_are_refused():
    with pytest.raises(medley.Invalid, match="medley.init"):
        medley.barrier()
    medley.init(["shm"])
    with pytest.raises(medley.Invalid, match="twice"):
        medley.init(["shm"])
    medley.finalize()
    with pytest.raises(medley.Invalid, match="list"):
        medley.init("shm")
