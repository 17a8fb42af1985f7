#!/usr/bin/env python3
"""Draws the charts of README.md and docs/performance.md from the CSV files beside it: plot.py writes docs/plots/*.svg, plot.py --check
exits 1 when one of them is not what the data gives."""
import csv
import pathlib
import sys

import charts

HERE = pathlib.Path(__file__).resolve().parent
PLOTS = HERE.parent.parent / "docs" / "plots"
HOSTS = {"setting": "2 namespace hosts × 2 ranks, tuned under load", "measured": "2026-11-19 21:40, 60 s"}


def rows(name, **wanted):
    with open(HERE / f"{name}.csv", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[key] == value for key, value in wanted.items())]


def steps():
    """Whole steps over each library and over auto."""
    groups = []
    for step, name in (("moe", "mixture of experts"), ("dlrm", "DLRM"), ("dense", "dense with a pipeline")):
        found = {row["backend"]: row for row in rows("mixes", step=step, **HOSTS)}
        times = {backend: float(row["us"]) for backend, row in found.items()}
        single = {backend: times[backend] for backend in ("mpi", "ucx", "gloo")}
        shown = [("Medley, auto", times["auto"], f"{times['auto']:,.0f} µs: {found['auto']['ratio']}× the best library", 0, None)]
        shown += [(backend, us, f"{us:,.0f} µs", 6, None) for backend, us in sorted(single.items(), key=lambda pair: pair[1])]
        groups.append((name, shown))
    return charts.bars("One training step's communication, auto beside each library alone",
                       "Bars of the time of three kinds of steps over Medley's auto, Open MPI, UCX and gloo; shorter is faster.", groups,
                       "2 × 2 ranks in two network namespaces of one machine with 16 cores, veth; medians; tables tuned for 60 s; all libraries through Medley.",
                       "time of a step, shorter is faster")


def collectives():
    """all_reduce over shm against Open MPI by size."""
    series = []
    for ranks in ("2", "8", "16"):
        found = rows("shm_beside_mpi", ranks=ranks, cores="16", op="all_reduce")
        series.append((f"{ranks} ranks", [(int(row["bytes"]), float(row["ratio"])) for row in found]))
    return charts.lines("all_reduce inside a host: Open MPI's time over Medley's",
                        "Curves over the size for 2, 8 and 16 ranks; above 1 Medley is faster.", series,
                        "16 cores of an Intel Xeon, Open MPI 4.1.6, interleaved runs of 15 November 2026; above the dashed line Medley is faster.",
                        "times as fast", mark=1)


def messages():
    """Ping-pong over shm, Open MPI and UCX."""
    found = rows("messages", pattern="ping-pong", cores="16")
    series = [(name, [(int(row["bytes"]), float(row[column])) for row in found])
              for name, column in (("Medley, shm", "shm_us"), ("Open MPI", "openmpi_us"), ("UCX", "ucx_us"))]
    return charts.lines("A message between two ranks of a host, one way", "Curves of the time over the size; lower is faster.", series,
                        "16 cores of an Intel Xeon, Open MPI 4.1.6, UCX 1.13.1, blocking ping-pong, medians; lower is faster.", "µs",
                        log=True)


def torch():
    """Training steps over gloo against Medley; what was measured again has a second bar."""
    bar = lambda name, row, ratio, colour: (name, float(row[ratio]), f"{float(row[ratio]):.3g}×", colour,
                                            (float(row["low_quartile"]), float(row["high_quartile"])))
    later = {"pipeline, 1F1B": "pipeline, 4 micro-batches, 2 ranks", "3D": "3D, 2 ranks (1 × 1 × 2)"}
    shown = []
    for row in rows("torch_steps"):
        shown.append(bar(row["example"], row, "gloo_over_medley", 0))
        for again in rows("torch_steps_later", example=later.get(row["example"], "")):
            shown.append(bar(f"{row['example'].split(',')[0]}, later", again, "after", 1))
    return charts.bars("PyTorch training steps: gloo's time over Medley's",
                       "Bars for eight examples with the middle half of the turns, two of them measured again; above 1 Medley is faster.",
                       [("", shown)],
                       "2 ranks on 2 cores, CPU tensors, small models; whiskers: the middle half of the turns. Orange: after two fixes of waiting.",
                       "times as fast as gloo; dashed: equal", mark=1)


def losses():
    """Training with compressed communication."""
    groups = []
    for what, name in (("ddp", "DDP: compress_hook"), ("fsdp2", "FSDP2: reduce_scatter"), ("moe", "MoE: all_to_all")):
        codecs = list(dict.fromkeys(row["codec"] for row in rows("compress_loss", what=what)))
        series = [("uncompressed" if codec == "none" else codec, [(int(row["step"]), float(row["loss"])) for row in rows("compress_loss", what=what, codec=codec)])
                  for codec in codecs]
        groups.append((name, series))
    return charts.panels("Loss of a small GPT with and without compression",
                         "Three panels of the loss over 200 steps: DDP, FSDP2 and a mixture of experts; the curves lie on each other.", groups,
                         "2 ranks; DDP with error feedback; means of ten steps. The best possible loss is 2.08.", "step", "loss")


def main():
    PLOTS.mkdir(exist_ok=True)
    stale = []
    for draw in (steps, collectives, messages, torch, losses):
        file, text = PLOTS / f"{draw.__name__}.svg", draw()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(file.name)
            if "--check" not in sys.argv:
                file.write_text(text, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"docs/plots: {', '.join(stale)} differ from bench/results; run bench/results/plot.py")


if __name__ == "__main__":
    main()
