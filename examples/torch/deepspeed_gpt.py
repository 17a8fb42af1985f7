"""A GPT trained by DeepSpeed with ZeRO stage 1, 2 or 3, over Medley or gloo, on CPUs.

    pip install deepspeed
    torchrun --nproc-per-node 2 deepspeed_gpt.py --backend medley --zero 3 --comms-logger
"""

import os

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DS_BUILD_OPS", "0")

import deepspeed
import torch
import torch.distributed as dist

import common
import gpt

arguments = common.start(__doc__, {"--zero": dict(type=int, choices=(1, 2, 3), default=1),
                                   "--comms-logger": dict(action="store_true", help="print the summary of DeepSpeed's comms logger")})
deepspeed.init_distributed(dist_backend=arguments.backend, dist_init_required=False)
steps = common.batches(arguments.steps, batch=8, length=gpt.LENGTH)
config = {
    "train_micro_batch_size_per_gpu": 8 // dist.get_world_size(),
    "zero_optimization": {"stage": arguments.zero},
    "gradient_clipping": 0.0,
    "zero_allow_untested_optimizer": True,
    "comms_logger": {"enabled": arguments.comms_logger, "verbose": False, "prof_all": True},
}
model = gpt.seeded()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
engine, *_ = deepspeed.initialize(model=common.named(model), optimizer=optimizer, config=config)

losses, times = common.train_by_engine(engine, steps, gpt.loss_of)

if arguments.comms_logger:
    deepspeed.comm.log_summary()
common.finish(arguments, losses, lambda: gpt.train_alone(steps, arguments.device), bound=1e-4, step_times=times)
