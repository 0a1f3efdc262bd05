"""Lightning's Trainer: accumulation, validation, several loaders, mixed precision, resumption in mid-epoch."""
import logging
import os
import warnings

import lightning
import torch
from cases import Batched, Files, Paths, Training, case, digest, main, network, owned, states, work
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.utilities import CombinedLoader
from torch.utils.data import DataLoader, WeightedRandomSampler


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model, self.noted, self.validation = network(), Training(), []

    def training_step(self, batch, number):
        if isinstance(batch, dict):  # several loaders at once
            batch = [torch.cat(parts) for parts in zip(*(one for one in batch.values() if one is not None))]
        indices, pixels, labels = batch
        self.noted.note(indices, pixels.float(), labels)
        loss = torch.nn.functional.cross_entropy(self.model(pixels), labels)
        self.noted.losses.append(loss.item().hex())
        return loss

    def validation_step(self, batch, number, dataloader_idx=0):
        _, pixels, labels = batch
        self.validation.append(torch.nn.functional.cross_entropy(self.model(pixels), labels).item().hex())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Stops(Callback):
    """Ends the training within an epoch, after a checkpoint."""

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        if trainer.global_step == 7:
            trainer.save_checkpoint(os.path.join(work(), "stopped.ckpt"))
            trainer.should_stop = True


class Data(lightning.LightningDataModule):
    def __init__(self, workers=0):
        super().__init__()
        self.workers = workers

    def train_dataloader(self):
        return DataLoader(Files(), batch_size=8, shuffle=True, num_workers=self.workers)

    def val_dataloader(self):
        return [DataLoader(Files(limit=20), batch_size=8), DataLoader(Paths(limit=12), batch_size=4)]


def loader(dataset=Files, **more):
    return DataLoader(dataset(), **{"batch_size": 8, "shuffle": True, **more})


def weighted():
    return loader(shuffle=False, sampler=WeightedRandomSampler([1.0 + i for i in range(96)], 64, generator=owned()))


def combined(mode):
    return CombinedLoader({"a": loader(), "b": loader(Paths, batch_size=6, num_workers=1)}, mode)


def trainer_of(**more):
    return lightning.Trainer(**{"accelerator": "cpu", "devices": 1, "max_epochs": 2, "logger": False,
                                "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False,
                                "default_root_dir": work(), "num_sanity_val_steps": 1, **more})


def result(trainer, module):
    module.noted.model = module.model
    return {"step": trainer.global_step, "validation": digest(module.validation), **module.noted.result()}


def fit(batches=loader, validation=None, **more):
    trainer, module = trainer_of(**more), Module()
    if isinstance(batches, lightning.LightningDataModule):
        trainer.fit(module, datamodule=batches)
    else:
        trainer.fit(module, batches(), validation() if validation else None)
    return result(trainer, module)


case("plain")(fit)
case("workers", lambda: loader(num_workers=2))(fit)
case("persistent", lambda: loader(num_workers=2, persistent_workers=True))(fit)
case("getitems", lambda: loader(Batched, num_workers=2))(fit)
case("weighted", weighted)(fit)
case("validated", validation=lambda: loader(shuffle=False, num_workers=1))(fit)
case("accumulated", accumulate_grad_batches=3)(fit)
case("clipped", gradient_clip_val=0.5)(fit)
case("bf16", precision="bf16-mixed")(fit)
case("limited", limit_train_batches=5, limit_val_batches=2, validation=lambda: loader(shuffle=False))(fit)
case("often", val_check_interval=4, validation=lambda: loader(shuffle=False))(fit)
for _mode in ("min_size", "max_size", "max_size_cycle"):
    case(f"combined-{_mode}", lambda mode=_mode: combined(mode))(fit)


@case("module-0", 0)
@case("module-2", 2)
def datamodule(workers):
    return fit(Data(workers), reload_dataloaders_every_n_epochs=1)


@case("resumed")
def resumed():
    first, module = trainer_of(callbacks=[Stops()]), Module()
    first.fit(module, loader(num_workers=1))
    found = result(first, module)
    second, module = trainer_of(), Module()
    second.fit(module, loader(num_workers=1), ckpt_path=os.path.join(work(), "stopped.ckpt"), weights_only=False)
    return {"first": found, "second": result(second, module)}


@case("best")
def best():
    keeps = ModelCheckpoint(dirpath=os.path.join(work(), "best"), save_last=True)
    trainer, module = trainer_of(enable_checkpointing=True, callbacks=[keeps]), Module()
    trainer.fit(module, loader(), loader(shuffle=False))
    saved = torch.load(os.path.join(work(), "best", "last.ckpt"), weights_only=False)
    return {"saved": digest(saved["state_dict"]), **result(trainer, module)}


@case("predicted")
def predicted():
    class Predicts(Module):
        def predict_step(self, batch, number):
            return self.model(batch[1])

    found = trainer_of().predict(Predicts(), loader(shuffle=False, num_workers=2))
    return {"found": digest(found), "states": states()}


@case("seeded")
def seeded():
    lightning.seed_everything(7, workers=True, verbose=False)
    return fit(lambda: loader(num_workers=2), deterministic=True)


@case("fabric")
def fabric():
    """Lightning's Fabric, in a loop of the job's own."""
    made = lightning.Fabric(accelerator="cpu", devices=1)
    training = Training()
    training.model, training.optimizer = made.setup(training.model, training.optimizer)
    batches = made.setup_dataloaders(loader(num_workers=2))
    for _ in range(2):
        for indices, pixels, labels in batches:
            training.note(indices, pixels, labels)
            loss = torch.nn.functional.cross_entropy(training.model(pixels), labels)
            training.optimizer.zero_grad()
            made.backward(loss)
            training.optimizer.step()
            training.losses.append(loss.item().hex())
    return training.result()


def begin():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")


if __name__ == "__main__":
    main(before=begin)
