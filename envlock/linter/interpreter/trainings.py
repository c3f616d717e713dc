"""Trainings: what trains a model, whether its weights are seeded, and what feeds it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from envlock.data.specifiers import matches_version
from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.flags import Flags
from envlock.linter.interpreter.source_files import Source
from envlock.linter.interpreter.values import (
    Chance,
    Either,
    Function,
    Instance,
    Made,
    Value,
    options,
)
from envlock.linter.module import Hit
from envlock.linter.rules.variables import describe_recipe

# Methods by which Keras trains a model whose weights it has made.
FITS = ("fit", "fit_generator", "get_updates", "train_on_batch")
# Methods, and the constructor of a PyDataset, that take `workers`.
FEEDS = (
    "fit",
    "fit_generator",
    "evaluate_generator",
    "predict_generator",
    "evaluate",
    "predict",
    "__init__",
)
# Libraries whose models need neither the seeds nor the switch of TensorFlow.
OTHERS = ("sklearn.", "xgboost.", "lightgbm.", "torch.", "jax.", "flax.", "catboost.", "scipy.")
OTHER_MODELS = frozenset(
    {"jax", "flax", "haiku", "torch", "xgboost", "lightning", "pytorch_lightning"}
)
# Arguments of `fit` that no weight depends on.
NOT_LEARNT = ("validation_data", "verbose")
OWN_DATASETS = (".Sequence", ".PyDataset")
"""How the names of the classes end from which a project derives datasets for Keras."""
BATCHES = {"__getitem__": 1, "on_epoch_end": 0, "on_epoch_begin": 0}
"""What Keras calls of them, in this order, and with how many arguments.

Source: https://keras.io/api/utils/python_utils/#pydataset-class
"""
IN_TURN = "Let one thread do it, and hand it what the others make in a fixed order."


class Trainings(Flags):
    """Calls of what trains a model."""

    def find_tapes(self, call: Call) -> list[Chance]:
        """Return the tapes whose gradients a call is given, in the order of the text.

        A tape marks its gradients as chance marks what it reaches, and is not reported for it.
        """
        tapes = [
            chance
            for chance, _ in self.collect_all_taints(call.list_values())
            if chance.rule == "TAPE" and chance.name == "tape"
        ]
        return sorted(tapes, key=lambda chance: getattr(chance.node, "lineno", 0))

    def call_trainer(self, owner: Value, name: str, call: Call) -> Value:
        """Return what a method returns by which a model learns."""
        self.use_functions(call)
        # `fit(images, seed=0)` calls NumPy's, and nothing else does: Keras 2.2.4's
        # https://github.com/keras-team/keras-preprocessing/blob/1.0.5/keras_preprocessing/image.py
        seed = call.keywords.get("seed")
        if seed is not None and getattr(owner, "name", "").endswith("ImageDataGenerator"):
            return self.seed("numpy.random.seed", Call(call.node, [seed]))
        tapes = self.find_tapes(call)
        learnt = [value for word, value in call.keywords.items() if word not in NOT_LEARNT]
        self.trains.add(self.source)
        self.trained = True
        batches = self.take_batches(call)
        self.count(*call.arguments, *learnt, *batches)
        # What the model is only tested on, and does not learn from: ENV303/good_aside_fit.py.
        for word in NOT_LEARNT:
            if word in call.keywords:
                self.ledger.show(self.collect_taints(call.keywords[word]))
        for value in (*call.arguments, *learnt, *batches):
            self.teach(owner, value)
        # A step along a tape's gradients is reported where the tape is, once for several
        # optimizers.
        if tapes:
            self.train_by_tape(tapes[0].node, tapes[0].source)
        elif (self.is_model(owner, name, call) or self.has_gradients(call)) and not self.hands_on(
            name
        ):
            self.train(call)
            # The others take steps of TensorFlow 1, whose own variables are draws: ENV204.
            if name in FITS or self.state.weights:
                self.check_weights(owner, call.node, self.source)
        self.check_workers(name, call)
        # In a graph these two only describe a step, which `run` takes.
        if name not in ("minimize", "compute_gradients"):
            self.note_race(owner, call.node, "train one model")
        return self.make("trained", call.node, "step")

    def apply_gradients(self, values: Iterable[Value]) -> None:
        for chance, _ in self.collect_all_taints(values):
            if chance.rule == "TAPE" and chance.name == "graph":
                self.note_training(chance.node, chance.source)

    def take_batches(self, call: Call) -> list[Value]:
        """Return the batches of datasets that the project defines, whose methods Keras calls."""
        found: list[Value] = []
        for value in call.list_values():
            for each in options(value):
                if isinstance(each, Instance) and _is_own_dataset(each):
                    found += self.call_dataset_methods(each, call.node)
        return found

    def call_dataset_methods(self, dataset: Instance, node: ast.AST) -> list[Value]:
        """Return what the methods return that Keras calls of a dataset."""
        found: list[Value] = []
        for name, count in BATCHES.items():
            method = dataset.owner.find_member(name)
            if isinstance(method, Function):
                given = [Value(kind="number")] * count
                found.append(self.call(method.bind_to(dataset), Call(node, given)))
        return found

    def hands_on(self, name: str) -> bool:
        """Return whether a method only calls the method of its name on what it wraps.

        `def fit(self, x): return self.model.fit(x)` is reported at its callers:
        ENV108/good_wrapper.py.
        """
        return getattr(self.frames[-1].node, "name", "") == name

    def is_model(self, owner: Value, name: str, call: Call) -> bool:
        """Return whether what is trained or compiled is Keras' or an optimizer of TensorFlow."""
        if isinstance(owner, Either):
            return any(self.is_model(each, name, call) for each in owner.options)
        if isinstance(owner, Made):
            if owner.name.startswith(("keras.optimizers.", "tf.train.")):
                return True
            if owner.name.startswith(OTHERS) or owner.name.endswith("ImageDataGenerator"):
                return False
            return "keras" in owner.marks or self.uses_keras()
        if isinstance(owner, Instance):
            bases = owner.owner.list_library_bases()
            if any(base.startswith(OTHERS) for base in bases):
                return False
            own = owner.owner.scope.source.module.uses_keras
            return own or any(base.startswith(("keras.", "tf.")) for base in bases)
        words = call.keywords.keys()
        # Encoders and scalers take one argument; a model of Keras takes labels or epochs as well.
        if name == "fit" and not words and len(call.arguments) == 1:
            return False
        # Nothing but a model of Keras is fitted or compiled with these.
        by_words = {"epochs", "callbacks"} <= words or {"optimizer", "loss"} <= words
        return by_words or self.uses_keras()

    def uses_keras(self) -> bool:
        """Return whether the file names Keras."""
        return self.source.module.uses_keras

    def compile_model(self, owner: Value, name: str, call: Call) -> Value | None:
        """Note a Keras model that is compiled, and the weights of one that is made out of sight."""
        # A loss tells it from other things that are compiled.
        has_loss = "loss" in call.keywords or len(call.arguments) > 1
        if not has_loss or not self.is_model(owner, name, call):
            return None
        if type(owner) is Value or (isinstance(owner, Made) and not owner.marks):
            self.state.weights = True
        if self.state.weights and not {"tf", "python"} & self.state.seeded.keys():
            self.ledger.compiled.setdefault(call.node, self.source)
        return None

    def train(self, call: Call, node: ast.AST | None = None) -> None:
        """Note that a training takes place."""
        self.note_training(node or call.node, self.source)

    def note_training(self, node: ast.AST, source: Source) -> None:
        """Note that a training takes place, and whether op determinism is on."""
        self.trains.add(source)
        self.trained = True
        # Asked here and not at the end: to switch on after a training is too late for it.
        if not self.state.switched and not self.is_on_cpu():
            message = "training starts here, but nothing turns op determinism on"
            self.ledger.report(
                "ENV108", source, Hit(node, message, fix=describe_recipe(self.tensorflow))
            )

    def train_by_tape(self, node: ast.AST, source: Source) -> None:
        """Note that steps are taken along the gradients of a tape."""
        self.note_training(node, source)
        # Which model a tape trains is not seen: weights that the program has made may be its own.
        if self.state.weights or self.built:
            self.check_weights(Value(), node, source)

    def check_weights(self, model: Value, node: ast.AST, source: Source) -> None:
        """Report a model whose weights nothing seeds."""
        has_weights = self.state.weights or self.built
        is_marked = isinstance(model, Made) and "unseeded" in model.marks
        if not {"tf", "python"} & self.state.seeded.keys():
            if not has_weights and not is_marked:
                return
            message = "a Keras model is trained here, but nothing seeds its weights"
        elif is_marked:
            # The mark is of the moment when it was made; what was seeded since came too late.
            message = "a Keras model is trained here that was made before anything was seeded"
        else:
            return
        self.ledger.report("ENV202", source, Hit(node, message))

    def report_partial(self, node: ast.AST, source: Source) -> None:
        """Report seeds that do not reach Keras."""
        # In the graphs of TensorFlow 1 Keras takes its seeds from the graph: ENV201/good_graph.py.
        if not matches_version([">=2.10"], self.tensorflow) or source.has_sessions:
            return
        # What such a program trains is mostly a model of that library, which Keras does not seed.
        if self.program is not None and not OTHER_MODELS.isdisjoint(self.program.packages):
            return
        message = "this seeds TensorFlow, but nothing seeds Python's random, from which Keras draws its seeds"
        self.ledger.report("ENV201", source, Hit(node, message))

    def check_workers(self, name: str, call: Call) -> None:
        """Report several Python workers that feed a model."""
        if name not in FEEDS or not self.uses_keras():
            return
        if self.is_dataset(call.get("x", 0) or Value()):  # workers are for generators
            return
        number = call.get_constant("workers")
        message = ""
        if type(number) is int and number > 1:
            message = f"{number} Python workers feed the model"
        elif call.get_constant("use_multiprocessing") is True:
            message = "Python worker processes feed the model"
        if message:
            self.ledger.report("ENV306", self.source, Hit(call.node, message))

    def is_dataset(self, value: Value) -> bool:
        """Return whether a value is a dataset of TensorFlow."""
        return isinstance(value, Made) and value.name == "tf.data.Dataset"

    def note_race(self, owner: Value, node: ast.AST, what: str) -> None:
        """Report several threads that change one thing: each goes on from what the others left just
        then.
        """
        if self.is_shared(getattr(owner, "born", 0)):
            hit = Hit(node, f"several threads {what}, each whenever it comes to it", fix=IN_TURN)
            self.ledger.report("ENV307", self.source, hit)


def _is_own_dataset(instance: Instance) -> bool:
    """Return whether an object is a dataset for Keras that the project defines."""
    bases = instance.owner.list_library_bases()
    return any(base.endswith(OWN_DATASETS) for base in bases)
