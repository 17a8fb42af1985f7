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


def keys(row):
    """Layout keys of a row of megatron_bridge.csv."""
    release, model, gpu = row["source"].split()[1], row["model"], row["gpu"]
    fp8 = row["precision"] != "BF16"
    out = ["grad_dtype=bf16"]
    experts = row["ep"].strip() not in ("", "n/a", "1")
    if not experts:
        return out
    if int(row["tp"]) > 1:
        out.append("etp=1")
    if full_graphs(release, model, gpu, fp8):
        return out + ["cuda_graphs=on", "overlap_moe_expert_parallel_comm=on"]
    if overlaps(release, model, gpu):
        out.append("overlap_moe_expert_parallel_comm=on")
    return out
