"""transformers' Trainer: a small model of random weights, with accumulation, evaluation, checkpoints and resumption."""
import glob
import json
import os

import torch
from cases import case, data, digest, main, seed, states, work
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

LONGEST = 16


class Lines(Dataset):
    """Lines of text files, each read from its file."""

    def __init__(self, first=0, last=120):
        self.places = []
        for path in sorted(glob.glob(os.path.join(data(), "lines", "*.jsonl"))):
            at = 0
            for line in open(path, "rb"):
                self.places.append((path, at, len(line)))
                at += len(line)
        self.places = self.places[first:last]

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        path, at, length = self.places[index]
        with open(path, "rb") as file:
            file.seek(at)
            row = json.loads(file.read(length))
        words = [int(word[1:]) + 1 for word in row["text"].split()][:LONGEST]
        words += [0] * (LONGEST - len(words))
        return {"input_ids": torch.tensor(words), "attention_mask": torch.tensor(words).ne(0).long(),
                "labels": torch.tensor(row["label"]), "index": torch.tensor(index)}


class Rows(Lines):
    """With one call for a batch."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Noting(Trainer):
    """Notes the samples of each step."""
    seen = None

    def _prepare_inputs(self, inputs):
        inputs = dict(super()._prepare_inputs(inputs))
        indices = inputs.pop("index").tolist()
        if self.model.training:
            self.seen = (self.seen or []) + indices
        return inputs


class Losses(TrainerCallback):
    def __init__(self):
        self.logs = []

    def on_log(self, arguments, state, control, logs=None, **more):
        self.logs.append({name: value for name, value in logs.items()
                          if "runtime" not in name and "per_second" not in name and "flos" not in name})


def model():
    seed(3)
    return BertForSequenceClassification(BertConfig(
        vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=LONGEST, num_labels=2))


def trainer_of(name, dataset=Lines, **more):
    settings = {"output_dir": os.path.join(work(), name), "per_device_train_batch_size": 8, "num_train_epochs": 2,
                "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True, "disable_tqdm": True,
                "remove_unused_columns": False, "seed": 5, **more}
    losses = Losses()
    trainer = Noting(model(), TrainingArguments(**settings), train_dataset=dataset(),
                     eval_dataset=Lines(120, 180) if "eval_strategy" in settings else None, callbacks=[losses])
    return trainer, losses


def result(trainer, losses):
    return {"indices": trainer.seen, "losses": digest(losses.logs), "last": losses.logs[-1],
            "steps": trainer.state.global_step, "weights": digest(list(trainer.model.parameters())), "states": states()}


def trained(name, **more):
    trainer, losses = trainer_of(name, **more)
    trainer.train()
    return result(trainer, losses)


def resumed(name, **more):
    """Stops in mid-epoch, and goes on in another Trainer from the checkpoint."""
    first, losses = trainer_of(name, save_strategy="steps", save_steps=10, max_steps=20, **more)
    first.train()
    second, others = trainer_of(name, save_strategy="steps", save_steps=10, max_steps=30, **more)
    second.train(resume_from_checkpoint=os.path.join(work(), name, "checkpoint-20"))
    return {"first": result(first, losses), "second": result(second, others)}


CASES = {
    "plain": {}, "workers": {"dataloader_num_workers": 2}, "getitems": {"dataset": Rows},
    "persistent": {"dataloader_num_workers": 2, "dataloader_persistent_workers": True, "dataloader_prefetch_factor": 3},
    "accumulated": {"gradient_accumulation_steps": 3},
    "dropped": {"dataloader_drop_last": True, "per_device_train_batch_size": 7},
    "by-length": {"train_sampling_strategy": "group_by_length"}, "in-order": {"train_sampling_strategy": "sequential"},
    "evaluated": {"eval_strategy": "epoch", "dataloader_num_workers": 2}, "data-seed": {"data_seed": 9},
    "bf16": {"bf16": True}, "smoothed": {"label_smoothing_factor": 0.1},
}
for _name, _settings in CASES.items():
    case(_name, _name, **_settings)(trained)
case("resumed", "resumed")(resumed)
case("resumed-workers", "resumed-workers", dataloader_num_workers=2)(resumed)
case("compiled", "compiled", torch_compile=True, torch_compile_backend="aot_eager", num_train_epochs=1,
     dataloader_drop_last=True)(trained)


def begin():
    logging.set_verbosity_error()
    logging.disable_progress_bar()


if __name__ == "__main__":
    main(before=begin)
