"""Lightning with DDP: torchrun --nproc-per-node 2 lightning_ddp.py {gloo,medley}"""

import sys

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy

if sys.argv[1] == "medley":
    import medley.torch  # noqa: F401


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self.losses = []

    def training_step(self, batch, number):
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


lightning.seed_everything(0)
net = Net()
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 8), torch.randn(64, 1)), batch_size=8)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy=DDPStrategy(process_group_backend=sys.argv[1]), max_epochs=1, logger=False,
                            enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(net, data)
if trainer.is_global_zero:
    print("RESULT", type(dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))).__name__, *net.losses)
