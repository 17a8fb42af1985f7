"""Timing on the GPU with events, for the scripts in this folder. Falls back to the CPU so that they can be tried without a GPU."""
import statistics
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def _group(fn, each, host_us=20):
    """Microseconds of one call, from `each` calls in a row, queued behind a sleep so that slow launches leave no gaps."""
    if device == "cpu":
        start = time.perf_counter()
        for _ in range(each):
            fn()
        return (time.perf_counter() - start) * 1e6 / each
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if hasattr(torch.cuda, "_sleep"):  # in cycles, near 2 GHz; at most 20 ms
        torch.cuda._sleep(int(2000 * min(20 + 1.2 * host_us * each, 20_000)))
    start.record()
    for _ in range(each):
        fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / each


def _host_us(fn):
    """How long the host takes to issue one call."""
    start = time.perf_counter()
    fn()
    return (time.perf_counter() - start) * 1e6


def median_us(fn, budget_us=6000, groups=5, queue=True):
    """Median over groups; `queue=False` includes the host's own time, as in eager code that is launch-bound."""
    for _ in range(2):
        fn()
    if device == "cuda":
        torch.cuda.synchronize()
    host_us = _host_us(fn)
    if device == "cuda":
        torch.cuda.synchronize()
    first = _group(fn, 1, host_us)
    each = max(1, min(50, int(budget_us / groups / max(first, 1))))
    if not queue:
        return statistics.median(_plain(fn, each) for _ in range(groups))
    return statistics.median(_group(fn, each, host_us) for _ in range(groups))


def _plain(fn, each):
    if device == "cpu":
        return _group(fn, each)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(each):
        fn()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / each
