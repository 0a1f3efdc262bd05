"""from_pretrained of a sharded model: load_transformers.py FOLDER."""
import sys

import torch
from timed import Load
from transformers import AutoModelForCausalLM
from transformers.models.llama import modeling_llama  # noqa: F401  imported before the clock starts

load = Load()
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16, local_files_only=True)
for parameter in model.parameters():
    load.tensor(parameter.detach())
load.end()
