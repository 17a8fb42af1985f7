#!/usr/bin/env python3
"""Draws predicted against measured tokens per second and GPU from the output of run.py, as a small SVG.

    python bench/steps/run.py FOLDER --json steps.json
    python bench/steps/plot.py steps.json -o docs/plan-time.svg
"""
import argparse
import json
import math

SIZE, LEFT, TOP, RIGHT, BOTTOM = 420, 62, 14, 196, 46
# Okabe and Ito's colours, which colour-blind readers can distinguish.
STYLES = [("one H200", "#000000"), ("NeMo, H100", "#009E73"), ("Megatron-Bridge", "#0072B2"), ("llm-foundry", "#E69F00"),
          ("vTrain, A100", "#56B4E9"), ("Korthikanti, A100", "#CC79A7"), ("playbook, nanotron", "#D55E00")]


def series_of(row):
    table = row["table"]
    for word, name in (("nemo", 1), ("megatron_bridge", 2), ("llm_foundry", 3), ("vtrain", 4), ("korthikanti", 5), ("ultrascale", 6)):
        if table.startswith(word):
            return STYLES[name][0]
    return STYLES[0][0] if row["gpus"] == 1 else None


def pathological(row):
    """Rows that run.py also leaves out: runs of the playbook below 1 % of the GPU's arithmetic."""
    if row["table"] != "ultrascale":
        return False
    return row["measured"] * 6 * float(row["model"].split("-")[1].rstrip("b")) * 1e9 < 0.01 * 989e12


def points_of(rows):
    points = {name: [] for name, _ in STYLES}
    for row in rows:
        name = series_of(row)
        if name and not pathological(row):
            points[name].append((row["measured"], row["tokens"]))
    return {name: sorted(some) for name, some in points.items() if some}


def draw(points):
    every = [value for some in points.values() for pair in some for value in pair]
    low, high = math.floor(math.log10(min(every))), math.ceil(math.log10(max(every)))
    scale = SIZE / (high - low)
    x = lambda value: LEFT + (math.log10(value) - low) * scale
    y = lambda value: TOP + SIZE - (math.log10(value) - low) * scale
    width, height = LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="12">',
           '<title>Predicted against measured tokens per second and GPU</title>',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<clipPath id="frame"><rect x="{LEFT}" y="{TOP}" width="{SIZE}" height="{SIZE}"/></clipPath>']
    for power in range(low, high + 1):
        at = 10**power
        out.append(f'<path d="M{x(at):.1f} {TOP}V{TOP + SIZE}M{LEFT} {y(at):.1f}H{LEFT + SIZE}" stroke="#ddd"/>')
        label = f"{at:,.0f}" if power >= 0 else f"{at:g}"
        out.append(f'<text x="{x(at):.1f}" y="{TOP + SIZE + 16}" text-anchor="middle">{label}</text>')
        out.append(f'<text x="{LEFT - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{label}</text>')
    first, last = 10**low, 10**high
    for factor, dash in ((1, ""), (1.2, "4 3"), (1 / 1.2, "4 3")):
        out.append(f'<path d="M{x(first):.1f} {y(first * factor):.1f}L{x(last):.1f} {y(last * factor):.1f}" stroke="#666" '
                   f'stroke-dasharray="{dash}" clip-path="url(#frame)"/>')
    drawn = sorted((item for item in STYLES if item[0] in points), key=lambda item: -len(points[item[0]]))
    for name, colour in drawn:  # the largest series below the others
        dots = "".join(f"M{x(a):.1f} {y(b):.1f}h0" for a, b in points[name])
        faint = 0.35 if len(points[name]) > 200 else 0.85
        out.append(f'<path d="{dots}" stroke="{colour}" stroke-width="{4 if faint < 0.5 else 5}" stroke-linecap="round" '
                   f'opacity="{faint}" clip-path="url(#frame)"/>')
    for line, (name, colour) in enumerate(item for item in STYLES if item[0] in points):
        at = TOP + 14 + 20 * line
        out.append(f'<circle cx="{LEFT + SIZE + 18}" cy="{at - 4}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{LEFT + SIZE + 28}" y="{at}">{name} ({len(points[name])})</text>')
    out.append(f'<text x="{LEFT + SIZE / 2}" y="{height - 8}" text-anchor="middle">measured tokens/s per GPU</text>')
    out.append(f'<text transform="translate(14 {TOP + SIZE / 2}) rotate(-90)" text-anchor="middle">predicted</text>')
    out.append(f'<text x="{LEFT + SIZE + 12}" y="{TOP + SIZE - 4}" fill="#666">dashed: 20 % off</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", help="JSON of run.py")
    parser.add_argument("-o", "--output", default="docs/plan-time.svg")
    arguments = parser.parse_args()
    with open(arguments.steps) as file:
        points = points_of(json.load(file))
    if not points:
        raise SystemExit(f"{arguments.steps} holds no steps")
    with open(arguments.output, "w") as file:
        file.write(draw(points))


if __name__ == "__main__":
    main()
