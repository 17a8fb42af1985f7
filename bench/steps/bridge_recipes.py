"""What the performance recipes of NVIDIA-NeMo/Megatron-Bridge set beyond the sizes that its tables publish.

Read from scripts/performance/configs of the tags v0.2.0 (25.11) to v0.5.0 (26.06) and src/megatron/bridge/perf_recipes of v0.6.0
(26.08): reduction of gradients in bf16, experts whole on a rank (expert_tensor_parallel_size=1), and, by release, model and GPU,
CUDA graphs, overlapped token exchanges, recomputed modules and the fused grouped MLP.
"""


def full_graphs(release, model, gpu, fp8):
    """From 26.06 on: one graph an iteration, token exchanges overlapped, one fused kernel for an expert's products and activation."""
    return release >= "26.06" and fp8 and (gpu in ("DGX-GB200", "DGX-GB300") or (gpu == "DGX-B300" and model == "Qwen3_30B_a3B"))


def overlaps(release, model, gpu):
    """moe_a2a_overlap of the recipes without a graph of the whole iteration."""
    if model == "Qwen3_235B_a22B":
        return gpu == "DGX-H100" or (gpu == "DGX-B200" and release < "26") or (gpu == "DGX-B300" and release.startswith("26.02"))
    return model == "GPT OSS 120B" and gpu == "DGX-GB200" and release >= "26.04"


def partial_graphs(release, model, gpu):
    """Graphs of attention, router and preprocessing; those without attention save little and are left out."""
    if model == "GPT OSS 120B":
        return gpu in ("DGX-GB300", "DGX-B300")
    if model == "Qwen3_30B_a3B":
        return gpu == "DGX-B200" and release >= "26.04"
    if model == "Qwen3_235B_a22B":
        return gpu == "DGX-GB200" or (gpu == "DGX-GB300" and release >= "26")
    return False


def recomputed(release, model, gpu):
    """recompute_modules, as far as a plan has them."""
    if model == "GPT OSS 120B" and gpu in ("DGX-GB200", "DGX-B200", "DGX-H100"):
        return "layernorm+moe_act"
    if model.startswith("DeepSeekV3"):
        return "moe_act" if gpu == "DGX-GB300" and release < "26" else "mla_up_proj"
    return ""


def fp8_recipe(precision):
    return {"FP8-CS": "current", "FP8": "current", "MXFP8": "mx", "FP8-MX": "mx"}[precision]


def keys(row):
    """Layout keys of a row of megatron_bridge.csv."""
    release, model, gpu = row["source"].split()[1], row["model"], row["gpu"]
    fp8 = row["precision"] != "BF16"
    out = ["grad_dtype=bf16"] + ([f"fp8={fp8_recipe(row['precision'])}"] if fp8 else [])
    if row["ep"].strip() in ("", "n/a", "1"):
        return out
    if int(row["tp"]) > 1:
        out.append("etp=1")
    if full_graphs(release, model, gpu, fp8):
        return out + ["cuda_graphs=on", "overlap_moe_expert_parallel_comm=on", "fused_grouped_mlp=on"]
    if overlaps(release, model, gpu):
        out.append("overlap_moe_expert_parallel_comm=on")
    if partial_graphs(release, model, gpu):
        out.append("cuda_graphs=partial")
    if recomputed(release, model, gpu):
        out.append("recompute_modules=" + recomputed(release, model, gpu))
    return out
