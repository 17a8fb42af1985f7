"""Runs the candidates interleaved, in short repetitions, until every cell is stable or the time is used up.

Used by bench/mpi/compare.
"""
import shutil
import sys
import time
from statistics import median

import candidates
import ratios

CHANGE = 4 / 3   # of the gauge within a repetition: its two states differ by a factor of three, its noise is 10 %
CROWD = 0.1      # cores: a tenth of one rank's time


def progress(text):
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        print("\r" + text[:width].ljust(width) + ("" if text else "\r"), end="", file=sys.stderr, flush=True)


def chunks(sizes):
    """Splits the sizes into short runs, because a repetition must end before the machine drifts: to 64 KiB, to 4 MiB, above."""
    first, last = sizes
    ladder = [first]
    while ladder[-1] < last:
        ladder.append(min(max(ladder[-1] * 4, 4), last))
    parts = ([s for s in ladder if low < s <= high] for low, high in ((-1, 1 << 16), (1 << 16, 4 << 20), (4 << 20, 1 << 62)))
    return [(part[0], part[-1]) for part in parts if part]


class Comparison:
    """Repeats until every cell is stable or the time is used up."""

    def __init__(self, options, everyone, gauge, bystanders):
        self.options, self.everyone, self.gauge, self.bystanders = options, everyone, gauge, bystanders
        self.cells, self.floor, self.readings = {}, [], []
        self.repetition = self.failures = self.discarded = self.unsettled = 0
        self.end = time.monotonic() + options.minutes * 60

    def todo(self):
        """(op, sizes) of the chunks that still need repetitions."""
        all_sizes = chunks(self.options.sizes)
        every = [(op, sizes) for op in self.options.ops for sizes in (all_sizes if op != "barrier" else all_sizes[:1])]
        done = {}
        for cell in self.cells.values():
            done[cell.chunk] = done.get(cell.chunk, True) and cell.stable(self.options.stable)
        return [chunk for chunk in every if not done.get(chunk)]

    def run(self):
        while time.monotonic() < self.end and (todo := self.todo()):
            for chunk in todo:
                # The first repetition always runs, so that every cell has a figure.
                if self.repetition > 0 and time.monotonic() > self.end:
                    break
                left = max(0, self.end - time.monotonic())
                progress(f"repetition {self.repetition + 1}, {chunk[0]}; {len(todo)} series open; {left:.0f} s left")
                self.attempt(chunk)
            self.repetition += 1
        progress("")

    def attempt(self, chunk):
        try:
            # Three attempts at a repetition without drift; then the last one is kept rather than none, and
            # counted.
            for tries in (1, 2, 3):
                self.bystanders.reset()
                times, readings = self.everyone_once(chunk)
                steady = max(readings) <= CHANGE * min(readings) and self.bystanders.crowding() <= CROWD
                if steady or tries == 3 or time.monotonic() > self.end:
                    self.unsettled += not steady
                    return self.record(chunk, times, readings)
                self.discarded += 1
        except candidates.Failure as error:
            self.failures += 1
            print(f"compare: {error}", file=sys.stderr)
            if self.failures == 3:
                raise candidates.Failure("three runs failed; giving up") from error

    def everyone_once(self, chunk):
        """One run of each candidate, in rotating order, and the gauge before, between and after."""
        turn = self.repetition % len(self.everyone)
        times, readings = {}, [self.gauge.read(self.options.batch)]
        for candidate in self.everyone[turn:] + self.everyone[:turn]:
            timeout = max(120, self.end - time.monotonic())
            times[candidate.name] = candidate.measure(*chunk, self.options.seconds, self.options.batch, timeout)
            readings.append(self.gauge.read(self.options.batch))
        return times, readings

    def record(self, chunk, times, readings):
        common = set.intersection(*(set(rows) for rows in times.values()))
        if not common:
            raise candidates.Failure(f"{chunk[0]}: no size was measured by all of {', '.join(times)}")
        for key in sorted(common):
            self.cells.setdefault(key, ratios.Cell(*key, chunk)).repetitions.append(
                {name: rows[key] for name, rows in times.items()})
        self.readings.append(median(readings))
        if ("all_reduce", 4) in common and self.options.ranks == 2:
            self.floor.append({"medley": times["medley"]["all_reduce", 4], "flags": median(readings)})
