"""Speed-ups and their uncertainty: medians of paired ratios over interleaved repetitions, with bootstrap intervals.

Used by bench/mpi/compare. A repetition is one short run of every candidate within the same seconds. The ratio is taken
inside each repetition and repetitions are resampled whole, so that drift of the machine, which affects all candidates,
cancels out; medians over all repetitions would compare one candidate's slow phases with another's fast ones.
"""
import math
import random
from statistics import median

ENOUGH = 5  # with fewer repetitions an interval means nothing


def quantile(values, q):
    values = sorted(values)
    position = q * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (position - below) * (values[above] - values[below])


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Cell:
    """One operation at one size: the repetitions, each {candidate: median_us}, and their statistics."""

    def __init__(self, op, size, chunk):
        self.op, self.size, self.chunk = op, size, chunk
        self.repetitions = []

    def rivals(self):
        return sorted(set(self.repetitions[0]) - {"medley"})

    def medians(self):
        return {name: median(row[name] for row in self.repetitions) for name in ["medley", *self.rivals()]}

    def ratio_to(self, rival, repetitions=None):
        """The rival's time over Medley's."""
        return median(row[rival] / row["medley"] for row in repetitions or self.repetitions)

    def better(self):
        return min(self.rivals(), key=self.ratio_to)

    def ratio(self, repetitions=None):
        """The better rival's time over Medley's."""
        return min(self.ratio_to(rival, repetitions) for rival in self.rivals())

    def resampled(self, count):
        """Ratios of `count` resamples; deterministic for the same repetitions."""
        draw = random.Random(f"{self.op} {self.size} {len(self.repetitions)}")
        return [self.ratio(draw.choices(self.repetitions, k=len(self.repetitions))) for _ in range(count)]

    def interval(self, count=1000):
        """95 % interval of the ratio; (None, None) after too few repetitions."""
        if len(self.repetitions) < ENOUGH:
            return None, None
        ratios = self.resampled(count)
        return quantile(ratios, 0.025), quantile(ratios, 0.975)

    def stable(self, width):
        """Whether the interval is narrower than `width` of the ratio."""
        low, high = self.interval(200)
        return low is not None and high - low <= width * self.ratio()

    def slower(self, limit=0.95):
        """Whether even the upper end of the interval is slower than the better rival."""
        high = self.interval()[1]
        return high is not None and high < limit


def interval_of_mean(groups, count):
    """95 % interval of the geometric mean over groups of the geometric mean over each group's cells."""
    if any(len(cell.repetitions) < ENOUGH for group in groups for cell in group):
        return None, None
    resampled = [[geometric_mean(ratios) for ratios in zip(*(cell.resampled(count) for cell in group))]
                 for group in groups]
    means_drawn = [geometric_mean(ratios) for ratios in zip(*resampled)]
    return quantile(means_drawn, 0.025), quantile(means_drawn, 0.975)


def means(cells, count=1000):
    """(mean, low, high) per operation, over the operations (`all`: each has the same weight) and over `all cells`."""
    by_op = {}
    for cell in cells:
        by_op.setdefault(cell.op, []).append(cell)
    sets = {**{op: [group] for op, group in by_op.items()}, "all": list(by_op.values()), "all cells": [cells]}
    return {name: (geometric_mean([geometric_mean([cell.ratio() for cell in group]) for group in groups]),
                   *interval_of_mean(groups, count)) for name, groups in sets.items()}


def floor_difference(repetitions, count=1000):
    """(difference, low, high) in µs between Medley's 4-byte all_reduce and the bare flag exchange."""
    differences = [row["medley"] - row["flags"] for row in repetitions]
    draw = random.Random(len(differences))
    resampled = [median(draw.choices(differences, k=len(differences))) for _ in range(count)]
    return median(differences), quantile(resampled, 0.025), quantile(resampled, 0.975)
