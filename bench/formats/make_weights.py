"""Makes one model's random weights: make_weights.py FOLDER LAYERS KIND..., each kind (KINDS) in a folder of its name.
A Llama in bfloat16: tensors of 4 to 98 MB in the order in which the model runs them, and two small ones a layer."""
import json
import os
import struct
import sys

import numpy
import torch

folder, layers, kinds = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
HIDDEN, INNER, WORDS, SHARDS = 1536, 4096, 32000, 8


def shapes():
    yield "model.embed_tokens.weight", (WORDS, HIDDEN)
    for layer in range(layers):
        here = f"model.layers.{layer}."
        for name in "qkvo":
            yield here + f"self_attn.{name}_proj.weight", (HIDDEN, HIDDEN)
        yield here + "mlp.gate_proj.weight", (INNER, HIDDEN)
        yield here + "mlp.up_proj.weight", (INNER, HIDDEN)
        yield here + "mlp.down_proj.weight", (HIDDEN, INNER)
        yield here + "input_layernorm.weight", (HIDDEN,)
        yield here + "post_attention_layernorm.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (WORDS, HIDDEN)


def write_tensors(path, state):
    """In the dictionary's order; the library's own writer sorts by name."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in state.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in state.values():
            file.write(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))


def write_shards(place):
    total = sum(tensor.nbytes for tensor in state.values())
    shards, done = [{} for _ in range(SHARDS)], 0
    for name, tensor in state.items():
        shards[min(done * SHARDS // total, SHARDS - 1)][name] = tensor
        done += tensor.nbytes
    where = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05}-of-{SHARDS:05}.safetensors"
        write_tensors(os.path.join(place, name), shard)
        where.update(dict.fromkeys(shard, name))
    with open(os.path.join(place, "model.safetensors.index.json"), "w", encoding="ascii") as index:
        json.dump({"metadata": {"total_size": total}, "weight_map": where}, index)
    with open(os.path.join(place, "config.json"), "w", encoding="ascii") as config:
        json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
                   "intermediate_size": INNER, "num_hidden_layers": layers, "num_attention_heads": 12,
                   "num_key_value_heads": 12, "vocab_size": WORDS, "tie_word_embeddings": False,
                   "dtype": "bfloat16"}, config)


def write_single(place):
    write_tensors(os.path.join(place, "model.safetensors"), state)


def write_torch(place):
    torch.save(state, os.path.join(place, "model.pt"))


def write_numpy(place):
    rows = torch.cat([tensor.reshape(-1) for tensor in state.values()]).view(-1, HIDDEN)
    numpy.save(os.path.join(place, "model.npy"), rows.view(torch.int16).numpy())


def write_gguf(place):
    from gguf import GGUFWriter
    writer = GGUFWriter(os.path.join(place, "model.gguf"), "llama")
    for name, tensor in state.items():
        writer.add_tensor(name, tensor.view(torch.float16).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


KINDS = {"single": write_single, "sharded": write_shards, "torch": write_torch, "numpy": write_numpy,
         "gguf": write_gguf}
torch.manual_seed(11)
state = {name: (torch.randn(shape) * 0.02).to(torch.bfloat16) for name, shape in shapes()}
for kind in kinds:
    os.makedirs(os.path.join(folder, kind))
    KINDS[kind](os.path.join(folder, kind))
