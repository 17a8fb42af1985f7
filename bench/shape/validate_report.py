#!/usr/bin/env python3
"""Measured speed-ups of proposed shapes (validate.py) next to the advisor's predictions for the same layers.

  python3 bench/shape/validate_report.py bench/shape/data/h200_validate.csv [--medley build/release/bin/medley]
"""
import argparse
import csv
import json
import os
import subprocess


def predicted_us(args, pair, shape, attention, mode):
    """The advisor's time of one layer, or of the logits, forward and backward."""
    if "vocab" in shape:
        tokens = pair["seq"] * pair["micro_batch"]
        h, vocab = shape["h"], shape["vocab"]
        rows = f"m,n,k,layout\n{tokens},{vocab},{h},TN\n{tokens},{h},{vocab},NN\n{vocab},{h},{tokens},NT\n"
        out = subprocess.run([args.medley, "shape", "gemm", "--gpu", args.gpu, "/dev/stdin", "--json", "-"], input=rows, text=True,
                             check=True, capture_output=True)
        return sum(row["predicted_us"] for row in json.loads(out.stdout)["rows"])
    model = (f"h={shape['h']},a={shape['heads']},kv={shape['kv']},head_dim={shape['d']},ffn={shape['ffn']},"
             f"gated={'on' if shape['gated'] else 'off'},layers=8,vocab=51200,seq={pair['seq']}")
    command = [args.medley, "shape", "--model", model, "--gpu", args.gpu, "--tp", str(pair["tp"]), "--micro-batch", str(pair["micro_batch"]),
               "--attention", args.fused if attention == "fused" else "unfused", "--json", "-"]
    out = subprocess.run(command + (["--compiled"] if mode == "compiled" else []), text=True, capture_output=True)
    if out.returncode not in (0, 1):
        raise SystemExit(out.stderr)
    return layer_without_communication(json.loads(out.stdout))


def layer_without_communication(report):
    """validate.py runs one rank's layer alone, so communication is left out."""
    layer = report.get("layer", {})
    return report["layer_us"] - layer.get("communication_us", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured")
    parser.add_argument("--pairs", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "pairs.json"))
    parser.add_argument("--gpu", default="h200-sxm")
    parser.add_argument("--fused", default="flash", help="the fused kernel PyTorch took: flash or cudnn")
    parser.add_argument("--medley", default="build/release/bin/medley")
    args = parser.parse_args()
    with open(args.pairs) as file:
        pairs = {pair["name"]: pair for pair in json.load(file)}
    with open(args.measured, newline="") as file:
        rows = {(r["name"], r["attention"], r["mode"], r["shape"]): r for r in csv.DictReader(file)}
    print(f"{'model class':26} {'attention':9} {'mode':9} {'original':>10} {'proposed':>10} {'parameters':>10} {'measured':>9} {'predicted':>9} {'off by':>7}")
    wrong = off = count = 0
    for (name, attention, mode, shape), row in rows.items():
        other = rows.get((name, attention, mode, "proposed"))
        if shape != "original" or other is None:
            continue
        pair = pairs[name]
        before, after = float(row["step_us"]), float(other["step_us"])
        gain = before / after - 1
        hoped = predicted_us(args, pair, pair["original"], attention, mode) / predicted_us(args, pair, pair["proposed"], attention, mode) - 1
        parameters = int(other["parameters"]) / int(row["parameters"]) - 1
        count += 1
        wrong += abs(gain) > 0.03 and gain * hoped < 0
        off += abs(gain - hoped) > 0.05
        print(f"{name:26} {attention:9} {mode:9} {before:7.0f} us {after:7.0f} us {parameters:+10.1%} {gain:+9.1%} {hoped:+9.1%} {abs(gain - hoped) * 100:4.1f} pp")
    print(f"{count} comparisons: {wrong} with the wrong sign where the measured change exceeds 3 %, {off} off by more than 5 points")


if __name__ == "__main__":
    main()
