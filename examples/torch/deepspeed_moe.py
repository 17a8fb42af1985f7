"""A mixture-of-experts GPT with DeepSpeed's MoE layer, with its experts distributed over the ranks, over Medley or gloo, on CPUs.

    pip install deepspeed
    torchrun --standalone --nproc-per-node 2 deepspeed_moe.py --backend medley
"""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DS_BUILD_OPS", "0")

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.moe.layer import MoE
from deepspeed.moe.utils import split_params_into_different_moe_groups_for_optimizer
from torch import nn

import common
import gpt
import moe_gpt


class Mixture(nn.Module):
    """DeepSpeed's layer with the weights of one of ours, no token dropped, and without its balancing loss."""

    def __init__(self, ours: moe_gpt.MoE) -> None:
        super().__init__()
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.layer = MoE(gpt.WIDTH, gpt.MLP(), num_experts=moe_gpt.EXPERTS, ep_size=ranks, k=1, drop_tokens=False, use_rts=False)
        self.layer.deepspeed_moe.gate.wg.load_state_dict(ours.router.state_dict())
        own = self.layer.deepspeed_moe.experts.deepspeed_experts
        for expert, alike in zip(own, ours.experts[rank * len(own):(rank + 1) * len(own)], strict=True):
            expert.load_state_dict(alike.state_dict())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, _, _ = self.layer(x)
        return out


arguments = common.start(__doc__)
deepspeed.init_distributed(dist_backend=arguments.backend, dist_init_required=False)
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
model = moe_gpt.model_of(0, 1)
for block in model.blocks:
    block.mlp = Mixture(block.mlp)
config = {"train_micro_batch_size_per_gpu": 8 // dist.get_world_size(), "zero_allow_untested_optimizer": True, "gradient_clipping": 0.0}
groups = split_params_into_different_moe_groups_for_optimizer({"params": list(model.parameters()), "name": "all"})
optimizer = torch.optim.AdamW(groups, lr=1e-3)
engine, *_ = deepspeed.initialize(model=common.named(model), optimizer=optimizer, config=config)

losses, times = common.train_by_engine(engine, steps, gpt.loss_of)


def alone() -> list[float]:
    return moe_gpt.train(moe_gpt.model_of(0, 1), steps, arguments.device, False)


common.finish(arguments, losses, alone, bound=1e-4, step_times=times)
