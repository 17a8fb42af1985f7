"""Runs a function on several ranks, each a process of its own, as a launcher would start them.

They are forked from a server that has imported torch once: importing it in every rank takes seconds."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import random
import socket
import sys
import traceback
from typing import Any, Callable

# Modules that cannot be imported are skipped, which only costs time.
PRELOADED = ["torch.distributed.tensor.parallel", "torch.distributed.pipelining", "medley.torch"]


def free_port() -> int:
    """A port below the kernel's ephemeral range, so that no outgoing connection takes it before the ranks do."""
    while True:
        port = random.randrange(15000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _rank_main(rank: int, size: int, port: int, environment: dict[str, str], function: Callable[..., Any], arguments: tuple, results: Any) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1",
                      MASTER_PORT=str(port), MEDLEY_TOKEN="tests", OMP_NUM_THREADS="1", **environment)
    try:
        results.put((rank, None, function(*arguments)))
    except BaseException as error:   # the test judges how a rank ends
        results.put((rank, f"rank {rank}: {type(error).__name__}: {error}\n{traceback.format_exc()}", None))
    results.close()
    results.join_thread()


def run(size: int, function: Callable[..., Any], *arguments: Any, timeout: float = 120, may_die: tuple[int, ...] = (),
        environment: dict[str, str] | None = None) -> list[Any]:
    """The function's result on every rank. An exception on any of them fails the test, and so does a rank that does
    not end. Ranks in `may_die` may end without a result."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    results = context.Queue()
    port = free_port()
    processes = [context.Process(target=_rank_main, args=(rank, size, port, environment or {}, function, arguments, results))
                 for rank in range(size)]
    for process in processes:
        process.start()
    returned: dict[int, Any] = {}
    problems: list[str] = []
    try:
        for _ in range(size - len(may_die)):
            rank, problem, value = results.get(timeout=timeout)
            if problem and rank not in may_die:
                problems.append(problem)
            returned[rank] = value
        for rank, process in enumerate(processes):
            process.join(timeout=timeout)
            if process.exitcode is None:
                problems.append(f"rank {rank} does not end")
            elif process.exitcode != 0 and rank not in may_die:
                problems.append(f"rank {rank} ended with {process.exitcode}")
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
    assert not problems, "\n".join(problems)
    return [returned.get(rank) for rank in range(size)]


def run_over(backend: str, size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """run(), repeated when torch's gloo hangs, as one run of fifty does: the destructor of its process group, called with
    the GIL held, joins a thread that needs the GIL to release a tensor."""
    for _ in range(2 if backend == "gloo" else 0):
        try:
            return run(size, function, *arguments, timeout=60)
        except queue.Empty:
            words = " ".join(str(word) for word in arguments)
            print(f"{function.__name__} {words}: torch's gloo did not end; this runs it once more", file=sys.stderr)
    return run(size, function, *arguments)
