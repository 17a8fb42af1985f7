"""Detects noise and drift of the machine during a repetition: the distance of its cores, and load by other programs.

Used by bench/mpi/alternation.py.
"""
import json
import os
import shutil
import time

import candidates


class Gauge:
    """The bare flag exchange: the lower bound for small messages, and a gauge of the current distance of the two cores.

    Virtual cores migrate: on one 2-core KVM guest an exchange takes 0.10 µs for some seconds (two threads of one core)
    and 0.29 µs for others (two cores), and every library follows by a factor of two.
    """

    def __init__(self, folder, program=None):
        if program:
            self.program = program
            return
        compiler = next((c for c in ("g++", "c++", "mpicxx") if shutil.which(c)), "c++")
        self.program = candidates.compile_with(compiler, "flag_exchange.cpp", folder / "flag_exchange")

    def read(self, batch):
        command = [str(self.program), "--seconds", "0.02", "--batch", batch]
        return json.loads(candidates.output_of(command))["rows"][0]["median_us"]


class Bystanders:
    """Cores that other programs keep busy, beyond those the ranks leave free.

    Two compilers on two cores turn a 1.5 ms all_reduce of 4 MiB into 9 ms, while small ones hardly change.
    """

    def __init__(self, ranks):
        self.ranks = ranks
        self.reset()

    def reset(self):
        self.start = self.snapshot()

    def snapshot(self):
        own = os.times()
        ours = own.user + own.system + own.children_user + own.children_system
        return time.monotonic(), self.busy_seconds(), ours

    @staticmethod
    def busy_seconds():
        """Sum over all cores: everything except idle and iowait."""
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    def crowding(self):
        """Cores taken from the ranks since reset(), on average."""
        wall, busy, ours = (now - then for now, then in zip(self.snapshot(), self.start))
        free = max(0, os.cpu_count() - self.ranks)
        return max(0, (busy - ours) / max(wall, 1e-9) - free)
