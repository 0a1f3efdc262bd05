"""Steps that torch.compile compiles, automatic mixed precision, accumulation, and losses of all kinds. What Dynamo
counts (graphs, breaks, compilations) is compared too."""
import torch
import torch._dynamo
from cases import PIXELS, Files, Training, case, main, network
from torch.utils.data import DataLoader

functional = torch.nn.functional


def loader(**more):
    return DataLoader(Files(), **{"batch_size": 16, "shuffle": True, "drop_last": True, **more})


def counted():
    """Dynamo's counters; those of caches on disk depend on what ran before."""
    counters = torch._dynamo.utils.counters
    return {name: dict(sorted(counters[name].items())) for name in ("frames", "stats", "graph_break", "unimplemented")
            if name in counters} | {"recompiled": sum(counters.get("recompiles", {}).values())}


def classes(labels, out):
    return functional.one_hot(labels, out.shape[1]).float()


_logits = torch.nn.BCEWithLogitsLoss()
LOSSES = {
    "cross_entropy": functional.cross_entropy,
    "module": torch.nn.CrossEntropyLoss(label_smoothing=0.1),
    "weighted": torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5, 1.0])),
    "none": lambda out, labels: functional.cross_entropy(out, labels, reduction="none").mean(),
    "sum": lambda out, labels: functional.cross_entropy(out, labels, reduction="sum") / len(labels),
    "nll": lambda out, labels: functional.nll_loss(functional.log_softmax(out, 1), labels),
    "mse": lambda out, labels: functional.mse_loss(out.softmax(1), classes(labels, out)),
    "bce": lambda out, labels: functional.binary_cross_entropy(out.softmax(1), classes(labels, out)),
    "logits": lambda out, labels: _logits(out, classes(labels, out)),
    "several": lambda out, labels: functional.cross_entropy(out, labels) + 0.1 * functional.mse_loss(
        out, torch.zeros_like(out)),
}


class Compiled(Training):
    """kind: what is compiled: the model, the loss, the forward pass with its loss, or the whole step."""

    def __init__(self, kind, backend, precision=None, accumulate=1, loss="cross_entropy", **more):
        super().__init__()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        self.precision, self.accumulate, self.taken = precision, accumulate, 0
        compiled = lambda function, name: torch.compile(  # noqa: E731
            function, backend=backend, **more) if kind == name else function
        self.loss, self.forward = compiled(LOSSES[loss], "loss"), compiled(self.model, "model")
        self.both, self.whole = compiled(self.plain, "both"), compiled(self.whole_step, "step")

    def plain(self, pixels, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            return self.loss(self.forward(pixels), labels) / self.accumulate

    def whole_step(self, pixels, labels):
        loss = self.both(pixels, labels)
        loss.backward()
        return loss

    def step(self, batch):
        indices, pixels, labels = batch
        self.note(indices, pixels, labels)
        loss = self.whole(pixels, labels)
        self.taken += 1
        if self.taken % self.accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        self.losses.append(loss.item().hex())


def trained(kind, backend="eager", epochs=2, loaders=None, **more):
    training = Compiled(kind, backend, **more)
    batches = loader(**(loaders or {}))
    for _ in range(epochs):
        training.epoch(batches)
    return {"dynamo": counted(), **training.result()}


for _kind in ("model", "loss", "both", "step"):
    for _backend in ("eager", "aot_eager"):
        case(f"{_kind}-{_backend}", _kind, _backend)(trained)
for _loss in LOSSES:
    case(f"uncompiled-{_loss}", "none", loss=_loss)(trained)
    case(f"both-{_loss}", "both", "aot_eager", epochs=1, loss=_loss)(trained)
case("inductor-model", "model", "inductor", epochs=1)(trained)
case("inductor-both", "both", "inductor")(trained)
case("whole-graph", "both", "aot_eager", fullgraph=True)(trained)
case("dynamic", "both", "aot_eager", dynamic=True, loaders={"drop_last": False, "batch_size": 10})(trained)
case("other-sizes", "both", "aot_eager", loaders={"drop_last": False, "batch_size": 20})(trained)
case("workers", "both", "aot_eager", loaders={"num_workers": 2})(trained)
for _kind in ("none", "model", "both"):
    case(f"bf16-{_kind}", _kind, "aot_eager", precision="bf16")(trained)
    case(f"accumulated-{_kind}", _kind, "aot_eager", accumulate=3)(trained)


@case("scaler")
def scaled():
    """A gradient scaler, which may leave out steps."""
    training, scaler = Training(), torch.amp.GradScaler("cpu", init_scale=2.0**120, growth_interval=2)
    for _ in range(2):
        for indices, pixels, labels in loader():
            training.note(indices, pixels, labels)
            with torch.autocast("cpu", torch.bfloat16):
                loss = functional.cross_entropy(training.model(pixels), labels)
            training.optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(training.optimizer)
            torch.nn.utils.clip_grad_norm_(training.model.parameters(), 1.0)
            scaler.step(training.optimizer)
            scaler.update()
            training.losses.append(loss.item().hex())
    return {"scale": scaler.get_scale().hex(), **training.result()}


@case("per-sample-gradients")
def per_sample():
    """Gradients of each sample, by torch.func."""
    training, found = Training(torch.nn.Linear(PIXELS, 4)), []
    weights = {name: value.detach() for name, value in training.model.named_parameters()}

    def loss(parameters, pixels, label):
        out = torch.func.functional_call(training.model, parameters, (pixels[None],))
        return functional.cross_entropy(out, label[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    for batch in loader():
        found.append(each(weights, batch[1], batch[2])["weight"].square().sum(dim=(1, 2)).tolist())
        training.step(batch)
    return {"norms": found, **training.result()}


def stepped(training, value):
    training.optimizer.zero_grad()
    value.backward()
    training.optimizer.step()
    training.losses.append(value.item().hex())


@case("checkpointed")
def checkpointed():
    """Activations are computed again in the backward pass, losses too."""
    training = Training()
    for indices, pixels, labels in loader():
        training.note(indices, pixels, labels)
        stepped(training, torch.utils.checkpoint.checkpoint(
            lambda p, t: functional.cross_entropy(training.model(p), t), pixels, labels, use_reentrant=False))
    return training.result()


@case("closure")
def closure():
    """L-BFGS computes the loss of a batch several times."""
    training = Training(torch.nn.Linear(PIXELS, 4))
    training.optimizer = torch.optim.LBFGS(training.model.parameters(), lr=0.1, max_iter=3)
    for indices, pixels, labels in loader():
        training.note(indices, pixels, labels)

        def again(pixels=pixels, labels=labels):
            training.optimizer.zero_grad()
            loss = functional.cross_entropy(training.model(pixels), labels)
            loss.backward()
            training.losses.append(loss.item().hex())
            return loss

        training.optimizer.step(again)
    return training.result()


@case("scripted")
def scripted():
    """A loss in TorchScript."""
    class Loss(torch.nn.Module):
        def forward(self, out: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(out, labels) + torch.nn.functional.mse_loss(out, out * 0.5)

    training, loss = Training(), torch.jit.script(Loss())
    for indices, pixels, labels in loader():
        training.note(indices, pixels, labels)
        stepped(training, loss(training.model(pixels), labels))
    return {"code": loss.code, **training.result()}


@case("exported")
def exported():
    """A graph of a model with its loss, by torch.export and by torch.fx."""
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = network().eval()

        def forward(self, pixels, labels):
            return functional.cross_entropy(self.model(pixels), labels)

    both, found = Both(), []
    graphs = [torch.fx.symbolic_trace(both), torch.export.export(both, (torch.zeros(16, PIXELS), torch.zeros(
        16, dtype=torch.int64))).module()]
    for _, pixels, labels in loader():
        found.append([graph(pixels, labels).item().hex() for graph in graphs])
    return {"found": found, "code": [str(graph.graph) for graph in graphs]}


if __name__ == "__main__":
    main()
