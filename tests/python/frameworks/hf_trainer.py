"""HF Trainer over gloo or, in its place, over Medley: torchrun --nproc-per-node 2 hf_trainer.py {gloo,medley}"""

import sys
import tempfile

import torch
import torch.distributed as dist

if sys.argv[1] == "medley":
    import medley.torch
    medley.torch.replace("gloo")

from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
tokens = torch.randint(0, 64, (32, 16))


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return len(tokens)

    def __getitem__(self, index):
        return {"input_ids": tokens[index], "labels": tokens[index]}


model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, use_cpu=True, ddp_backend="gloo", max_steps=4, per_device_train_batch_size=4, logging_steps=1,
                                  report_to=[], save_strategy="no", disable_tqdm=True, seed=0)
    trainer = Trainer(model=model, args=arguments, train_dataset=Tokens())
    trainer.train()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
if dist.get_rank() == 0:
    carried = type(dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))).__name__
    print("RESULT", carried, *losses)
dist.destroy_process_group()
