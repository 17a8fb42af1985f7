#!/usr/bin/env python3
"""Runs published training steps through `medley plan` and reports the errors of the predictions.

    python bench/steps/run.py FOLDER [--vtrain FILE] [--medley build/release/bin/medley] [--json F]

FOLDER holds CSV files in the columns of measure_h200.py (ultrascale.csv, llm_foundry.csv, megatron_bridge.csv, any
other) and nemo_torchtitan_h100.csv, whose rows name the command that reproduces them. Rows are compared by tokens per second
and GPU. fitted() defines which rows the constants were fitted to, by model and scale, never by row.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import shlex
import statistics
import subprocess
import sys

import bridge_recipes

MACHINES = {"h100-sxm": "dgx-h100", "h200-sxm": "dgx-h200", "a100-80-sxm": "dgx-a100", "a100-40-sxm": "theta-gpu",
            "DGX-H100": "dgx-h100", "DGX-B200": "dgx-b200", "DGX-B300": "dgx-b300", "DGX-GB200": "gb200-nvl72",
            "DGX-GB300": "gb300-nvl72"}
BRIDGE_MODELS = {"LLAMA3_8B": "llama-3-8b", "LLAMA3_70B": "llama-3-70b", "LLAMA3.1_405B": "llama-3.1-405b",
                 "Qwen3_30B_a3B": "qwen3-30b-a3b", "Qwen3_235B_a22B": "qwen3-235b-a22b", "DeepSeekV3": "deepseek-v3",
                 "DeepSeekV3 (w/o MTP)": "deepseek-v3", "GPT OSS 120B": "gpt-oss-120b"}
FRAMEWORKS = {"fsdp FULL_SHARD": "fsdp1", "fsdp SHARD_GRAD_OP": "fsdp1", "nanotron": "nanotron", "megatron": "megatron"}
# Korthikanti et al. 2022, table 5: A100, t = 8, d = 1, seconds with full recompute and with sp + selective recompute.
KORTHIKANTI = [("22B", 6144, 64, 48, 4, 4, 1, 1, 1.42, 1.10), ("175B", 12288, 96, 96, 1, 64, 8, 3, 18.13, 13.75),
               ("530B", 20480, 128, 105, 1, 280, 35, 3, 49.05, 37.83), ("1T", 25600, 160, 128, 1, 512, 64, 1, 94.42, 71.49)]

Case = collections.namedtuple("Case", "table model gpus seq layout arguments measured memory_gib group")


def number(row, key, default=1):
    text = (row.get(key) or "").strip()
    return int(float(text)) if text and text != "n/a" else default


def step_case(table, row):
    """One row of the common schema, or the reason why it cannot be planned."""
    framework = FRAMEWORKS.get(row["framework"], row["framework"])
    gpus, tp, pp, cp = (number(row, key) for key in ("gpus", "tp", "pp", "cp"))
    dp = number(row, "dp", gpus // (tp * pp * cp))
    precision = row["precision"].lower()
    if precision in ("nvfp4",):
        return "fp4 products are not modelled"
    if row["h"]:
        shape = (f"h={row['h']},a={row['a']},kv={row['kv']},layers={row['layers']},ffn={row['ffn']},vocab={row['vocab']},"
                 f"seq={row['seq']},")
        if framework == "fsdp1":  # MPT: ALiBi, no biases
            model = shape + "family=gpt2,positions=alibi,bias=off,tied=on"
        elif row["gated"] == "1":
            model = shape + f"family=llama,tied={'on' if row['tied'] == '1' else 'off'}"
        else:
            model = shape + f"family=gpt2,tied={'on' if row['tied'] == '1' else 'off'}"
    else:
        model = BRIDGE_MODELS.get(row["model"])
        if model is None:
            return f"{row['model']} is not a transformer that plan knows"
    layout = f"dp={dp},tp={tp},pp={pp},cp={cp}"
    if number(row, "ep") > 1:
        layout += f",ep={number(row, 'ep')}"
    if number(row, "vp") > 1:
        layout += f",vp={number(row, 'vp')}"
    zero = number(row, "zero", 1 if framework == "megatron" else 0)
    layout += f",zero={zero}"
    if tp > 1:
        layout += ",sp=on"
    if row["recompute"] and row["recompute"] != "none":
        layout += f",recompute={row['recompute']}"
    if framework == "fsdp1":
        layout += ",attention=flash1"
    if framework == "megatron":
        layout += ",overlap_grad_reduce=on,overlap_param_gather=on" + (",tp_comm_overlap=on" if tp > 1 else "")
    if row["source"].startswith("megatron-bridge"):
        layout += "," + ",".join(bridge_recipes.keys(row))
    if row.get("compile") == "on":
        layout += ",compile=on"
    if precision != "bf16" and "fp8=" not in layout:
        layout += ",fp8=on"
    # The playbook's runs of 16M tokens a step are a sweep of their own: all five of this half show the host time of PyTorch's
    # debug checks, with and without a pipeline.
    if table == "ultrascale" and number(row, "global_batch") * int(row["seq"]) == 1 << 24:
        layout += ",distributed_debug=on"
    # The playbook's hosts are Amazon's (the benchmark branch of nanotron names them).
    machine = "ec2-p5" if table == "ultrascale" else MACHINES.get(row["gpu"])
    if machine is None:
        return f"no machine for GPU {row['gpu']}"
    arguments = ["--model", model, "--layout", layout, "--framework", framework, "--micro-batch", row["micro_batch"],
                 "--global-batch", row["global_batch"], "--seq", row["seq"], "--machine", machine]
    # The playbook's figure is torch's peak in GiB.
    memory = float(row["memory_gb"]) if row.get("memory_gb") else None
    if memory and row["source"].startswith("torch "):  # measure_h200.py's are GB
        memory *= 1e9 / 2**30
    return Case(table, row["model"], gpus, int(row["seq"]), layout, arguments, float(row["tokens_per_s_per_gpu"]), memory,
                (row["model"], gpus, row["global_batch"]))


def nemo_case(table, row):
    words = shlex.split(row["medley_command"])[2:]
    arguments = [w for w in words if w not in ("--force", "--json", "-")]
    at = arguments.index("--model") + 1
    # embedding and head count as layers: the rows run 126 layers where 128 once had to be planned
    for given, real in (("layers=128", "layers=126"), ("layers=32,ffn=53248", "layers=30,ffn=53248"),
                        ("layers=64,ffn=53248", "layers=62,ffn=53248")):
        arguments[at] = arguments[at].replace(given, real)
    layout = arguments.index("--layout") + 1
    if row["framework"] == "fsdp2":  # torchtitan of December 2024: SDPA was FlashAttention 2; float8 scaled by each tensor
        arguments[layout] = arguments[layout].replace("recompute=selective", "recompute=per_op") + ",compile=on,attention=flash"
        arguments[arguments.index("--machine") + 1] = "dgx-h200" if row["gpu"] == "h200" else "grand-teton-h100"
    if row["model"] == "Nemotron4 340b":  # NA in the README's table; launch.sh of the same version sets 12
        arguments[layout] += ",vp=12"
    if row["model"].startswith("Nemotron4"):  # NeMo's squared_relu is two eager functions, which no fusion covers
        arguments[at] += ",squared_relu=on"
        arguments[layout] += ",bias_activation_fusion=off"
    if row["model"].startswith("Grok1"):  # ub_tp_comm_overlap: false in grok1_314b.yaml
        arguments[layout] = arguments[layout].replace(",tp_comm_overlap=on", "")
    if row["framework"] == "megatron":  # grad_reduce_in_fp32 = False in NeMo's performance recipes
        arguments[layout] += ",grad_dtype=bf16"
    if row["dtype_published"] == "fp8":
        arguments[layout] += ",fp8=current" if row["framework"] == "fsdp2" else ",fp8=delayed"
    name = "torchtitan" if row["table"].startswith("torchtitan") else "nemo"
    name += " moe" if "MoE" in row["table"] else ""
    return Case(f"{name} {row['dtype_published']}", row["model"], int(row["gpus"]), int(row["seq"]), row["layout"], arguments,
                float(row["published"]), None, (row["model"], row["gpus"], row["global_batch"]))


def vtrain_case(row):
    get = lambda key: int(float(row[key]))
    gpus, seq = get("# GPUs"), get("sequence length")
    layout = f"dp={get('data parallelism')},tp={get('tensor parallelism')},pp={get('pipeline parallelism')},flash=off"
    model = (f"h={get('hidden size')},a={get('attention heads')},layers={get('# layers')},vocab=50257,seq={seq}")
    tokens = get("global batch") * seq / (float(row["iteration time (ms)"]) * 1e-3) / gpus
    arguments = ["--model", model, "--layout", layout, "--framework", "megatron", "--micro-batch", row["micro batch"],
                 "--global-batch", row["global batch"], "--dtype", "f16", "--machine", "dgx-a100"]
    return Case("vtrain", f"h{get('hidden size')}", gpus, seq, layout, arguments, tokens, None, None)


def korthikanti_cases():
    for name, h, a, layers, micro, batch, pp, vp, full, selective in KORTHIKANTI:
        for recompute, seconds in (("full", full), ("selective", selective)):
            layout = f"tp=8,pp={pp},recompute={recompute},flash=off" + (",sp=on" if recompute == "selective" else "")
            layout += f",vp={vp}" if vp > 1 and pp > 1 else ""
            arguments = ["--model", f"h={h},a={a},layers={layers},vocab=51200,seq=2048", "--layout", layout, "--framework",
                         "megatron", "--micro-batch", str(micro), "--global-batch", str(batch), "--dtype", "f16",
                         "--machine", "selene"]
            yield Case("korthikanti", name, 8 * pp, 2048, layout, arguments, batch * 2048 / seconds / (8 * pp), None, None)


def pathological(case):
    """Below 1 % of an H100's arithmetic: runs of the playbook that stalled (a neighbour layout of the same job is a hundred times
    faster). Most ran a build of nanotron that polls every message between stages with sleeps of 0.1 s (branch nouamane/bench2):
    0.55 s a micro-batch with 2 stages, 1.1 s with more. They are counted, left out of the errors, and kept in the choice of layouts."""
    if case.table != "ultrascale":
        return False
    billions = float(case.model.split("-")[1].rstrip("b"))
    return case.measured * 6 * billions * 1e9 < 0.01 * 989e12


def fitted(case):
    """Whether a shipped constant was fitted to this row (docs/plan-time.md): a model at a scale belongs to one side as a whole."""
    if case.table == "ultrascale":
        return (case.model, case.gpus) in {("llama-1.34b", 8), ("llama-8.86b", 16), ("llama-3.57b", 128)}
    if case.gpus == 1 and case.model == "gpt-125m":
        return True
    if case.table == "megatron_bridge":
        return case.model == "Qwen3_30B_a3B" and case.gpus == 8
    if case.table == "llm_foundry":
        return case.model == "mpt-1b" and case.gpus == 8
    return False


def predict(medley, case):
    command = [medley, "plan", *case.arguments, "--force", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
    answer = json.loads(done.stdout)
    return {"tokens": answer["tokens_per_s_per_gpu"], "memory": answer["memory"]["total"], "fits": answer["fits"],
            "breakdown": {k: round(v / answer["step_us"], 3) for k, v in answer["breakdown"].items() if v > 0.005 * answer["step_us"]}}


def summary(name, errors):
    if not errors:
        return
    absolute = sorted(abs(e) for e in errors)
    print(f"  {name:<44} {len(errors):>5}  MAPE {100 * statistics.mean(absolute):6.1f} %  median {100 * statistics.median(absolute):6.1f} %"
          f"  bias {100 * statistics.mean(errors):+7.1f} %  worst {100 * absolute[-1]:6.1f} %")


def groups_of(results, key):
    by = collections.defaultdict(list)
    for case, answer, error in results:
        by[key(case)].append(error)
    return sorted(by.items())


def layout_class(case):
    sizes = dict(item.split("=") for item in case.layout.split(",") if "=" in item)
    return " ".join(k for k in ("tp", "pp", "cp", "ep") if int(sizes.get(k, 1)) > 1) or "dp only"


def choices(results):
    """How good is the layout that the prediction would choose, in each (model, GPUs, batch)?"""
    by = collections.defaultdict(list)
    for case, answer, error in results:
        if case.group and answer["fits"]:
            by[case.group].append((answer["tokens"], case.measured, error))
    lost, near, best_errors = [], [], []
    for rows in by.values():
        if len(rows) < 3:
            continue
        best = max(measured for _, measured, _ in rows)
        best_errors += [error for _, measured, error in rows if measured == best]
        ranked = sorted(rows, reverse=True)
        lost.append(1 - ranked[0][1] / best)
        near.append(max(measured for _, measured, _ in ranked[:5]) >= 0.95 * best)
    if lost:
        summary("best layout of each group", best_errors)
        print(f"  chosen by the prediction: {100 * statistics.mean(lost):.1f} % below the best measured on average over {len(lost)} "
              f"groups; one of the first five within 5 % in {100 * statistics.mean(near):.0f} % of them")


def report(table, everything, worst):
    print(f"\n{table}")
    results = [r for r in everything if not pathological(r[0])]
    if len(results) < len(everything):
        print(f"  {len(everything) - len(results)} rows below 1 % of the GPU's arithmetic are left out of the errors")
    summary("all rows", [e for _, _, e in results])
    fit = [r for r in results if fitted(r[0])]
    if fit:
        summary("rows that fitted a constant", [e for _, _, e in fit])
        summary("rows never fitted", [e for r in results if not fitted(r[0]) for e in [r[2]]])
    for title, key in (("model", lambda c: c.model), ("GPUs", lambda c: f"{c.gpus:5d}"), ("sequence", lambda c: f"{c.seq:6d}"),
                       ("layout", layout_class)):
        parts = groups_of(results, key)
        if len(parts) > 1:
            for name, errors in parts:
                summary(f"{title} {name}", errors)
    memory = [answer["memory"] / (case.memory_gib * 2**30) - 1 for case, answer, _ in results if case.memory_gib]
    if memory:
        absolute = sorted(abs(e) for e in memory)
        print(f"  memory: median {100 * statistics.median(absolute):.1f} %, 90th percentile {100 * absolute[int(0.9 * len(absolute))]:.1f} %, "
              f"bias {100 * statistics.mean(memory):+.1f} %")
    if table == "ultrascale":
        choices([r for r in everything if r[0].gpus <= 256])
    for case, answer, error in sorted(results, key=lambda r: -abs(r[2]))[:worst]:
        print(f"    {100 * error:+7.1f} %  {case.model} {case.gpus} GPUs seq {case.seq} {case.layout} "
              f"measured {case.measured:.0f}, predicted {answer['tokens']:.0f} tokens/s  {answer['breakdown']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="the CSV files of steps")
    parser.add_argument("--vtrain", help="vTrain's table (default: beside the folder)")
    parser.add_argument("--also", action="append", default=[], help="another CSV of steps, such as measure_h200.py's")
    parser.add_argument("--medley", default="build/release/bin/medley")
    parser.add_argument("--tables", help="only tables whose names hold one of these words, by commas")
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("--json", help="write every row with its prediction")
    arguments = parser.parse_args()
    cases, refused = [], collections.Counter()
    paths = sorted(os.path.join(arguments.folder, f) for f in os.listdir(arguments.folder) if f.endswith(".csv")) + arguments.also
    for path in paths:
        table = os.path.splitext(os.path.basename(path))[0]
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                case = nemo_case(table, row) if "medley_command" in row else step_case(table, row)
                if isinstance(case, str):
                    refused[f"{table}: {case}"] += 1
                else:
                    cases.append(case)
    vtrain = arguments.vtrain or os.path.join(os.path.dirname(os.path.abspath(arguments.folder)), "vtrain_single_train.csv")
    if os.path.exists(vtrain):
        with open(vtrain, newline="") as file:
            cases += [vtrain_case(row) for row in csv.DictReader(file)]
    cases += korthikanti_cases()
    if arguments.tables:
        cases = [c for c in cases if any(word in c.table for word in arguments.tables.split(","))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda case: predict(arguments.medley, case), cases))
    by, everything = collections.defaultdict(list), []
    for case, answer in zip(cases, answers):
        if isinstance(answer, str):
            refused[f"{case.table}: {answer}"] += 1
            continue
        error = answer["tokens"] / case.measured - 1
        by[case.table].append((case, answer, error))
        everything.append({**case._asdict(), **answer, "error": error})
    for table, results in sorted(by.items()):
        report(table, results, arguments.worst)
    if refused:
        print("\nnot planned:")
        for reason, count in refused.most_common():
            print(f"  {count:4d}  {reason}")
    print("\nfitted on: vTrain's fit half (src/cost/calibrate.hpp) for dgx-a100; mpt-1b on 8 GPUs of llm-foundry for fsdp1; a 125M GPT "
          "on one H200 and Qwen3-30B-A3B on 8 B200 for the host. Chosen with their errors in view, so not blind: the playbook (host times of nanotron, tensors held "
          "while the host is ahead, links of ec2-p5, the debug checks of its runs with pipelines or 16M tokens), NeMo (slowdown beside collectives; its recipes were read after its errors), Korthikanti (throttling and collectives of "
          "selene), llm-foundry (share of flash1), the power limit (products and steps of h200_held_out.csv and h200_blind_steps.csv), eager loss and rotation (both blind sets, after their predictions).")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(everything, file)


if __name__ == "__main__":
    sys.exit(main())
