"""What lives in the zoos of `envlock diverge`, and what is to be said of each program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envlock.runtime.report import Report

ZOO, THREAD_ZOO, PIPELINE_ZOO, SCRIPT_ZOO, GRAPH_ZOO, TRAINING_ZOO, LOOP_ZOO, STREAM_ZOO, OBJECT_ZOO = (
    Path(__file__).with_name(f"{name}zoo.py")
    for name in ("", "thread_", "pipeline_", "script_", "graph_", "training_", "loop_", "stream_", "object_")
)


@dataclass(frozen=True)
class Animal:
    """A program of the zoo, and what is to be said of it.

    Attributes:
        name: of the function; a comment with it marks the lines that may be named.
        verdict: the right one.
        types: the operations that may be named; any, where it is empty.
        zoo: the file that it lives in.
        fresh: whether it differs only between processes.
    """

    name: str
    verdict: str
    types: tuple[str, ...] = ()
    zoo: Path = ZOO
    fresh: bool = False

    def has_kind(self, report: Report) -> bool:
        """Return whether a report names the kind of the cause, and its operation."""
        seen = report.attachments
        return seen["verdict"] == self.verdict and (not self.types or seen["culprit"] in self.types)

    def is_right(self, report: Report) -> bool:
        """Return whether a report names the cause and its line."""
        seen = report.attachments
        return (
            self.has_kind(report) and seen["place"] is not None and seen["place"]["line"] in lines(self.name, self.zoo)
        )


_RANDOM = ("RandomUniform", "RandomStandardNormal")
ANIMALS = (
    Animal("scatter", "operation", ("ResourceScatterSub",)),
    Animal("embedding_sgd", "operation", ("ResourceScatterSub", "ResourceScatterAdd")),
    Animal("bincount", "operation", ("DenseBincount",)),
    Animal("crop", "operation", ("CropAndResizeGradImage",)),
    Animal("numpy_function", "outside", ("PythonFunction",)),
    Animal("numpy_weights", "outside", ("MatMul",)),
    Animal("dropout", "operation", _RANDOM),
    Animal("keras_initializer", "outside"),
    Animal("map_fn", "graph", _RANDOM),
    Animal("data_order", "data"),
    Animal("data_shuffle", "data", ("IteratorGetNext",)),
    Animal("random_branch", "sequence"),
    Animal("clock", "outside", ("Mul",)),
    Animal("addn", "graph", ("AddN",)),
    Animal("xla_random", "graph", _RANDOM),
)
IN_THREADS = (
    Animal("mirrored_dropout", "operation", ("RandomUniform",), THREAD_ZOO),
    Animal("hogwild", "race", ("AssignSubVariableOp",), THREAD_ZOO),
    Animal("thread_dropout", "operation", ("RandomUniform",), THREAD_ZOO),
    Animal("thread_numpy", "outside", ("Sin",), THREAD_ZOO),
    Animal("queue_loader", "outside", ("AddV2",), THREAD_ZOO),
    Animal("late_seed", "outside", ("Sin",), THREAD_ZOO),
)
CLEAN_IN_THREADS = ("clean_threads", "clean_pool", "clean_turns", "clean_mirrored", "clean_undefined")
KERAS_2 = (Animal("keras_dropout", "operation", ("RandomUniform",)),)
KERAS_3 = (
    Animal("keras_dropout", "outside"),
    Animal("embedding_adagrad", "operation", ("ResourceScatterAdd", "ResourceScatterSub")),
)


PIPELINES = tuple(Animal(name, "data", zoo=PIPELINE_ZOO) for name in ("interleave_order", "cached_noise"))
CLEAN_PIPELINES = ("slow_map",)
SCRIPTS = (
    Animal("object_ids", "outside", ("AddV2",), SCRIPT_ZOO),
    Animal("secret_key", "outside", (), SCRIPT_ZOO),
    Animal("odd_microsecond", "sequence", (), SCRIPT_ZOO),
    Animal("shuffled_order", "outside", ("GatherV2",), SCRIPT_ZOO),
    Animal("resumed_checkpoint", "outside", ("RestoreV2",), SCRIPT_ZOO),
)
CLEAN_SCRIPTS = ("stopwatch", "checkpoint")
GRAPHS = (
    Animal("free_generator", "operation", ("NonDeterministicInts",), GRAPH_ZOO),
    Animal("unseeded_layer", "operation", ("TruncatedNormal",), GRAPH_ZOO),
    Animal("sampled_tokens", "operation", ("Multinomial",), GRAPH_ZOO),
    Animal("negative_samples", "operation", ("LogUniformCandidateSampler",), GRAPH_ZOO),
    Animal("fractional_pool", "operation", ("FractionalMaxPool",), GRAPH_ZOO),
    Animal("stamped", "operation", ("Timestamp",), GRAPH_ZOO),
    Animal("shuffle_queue", "operation", ("QueueDequeueV2",), GRAPH_ZOO),
    Animal("graph_shuffle", "operation", ("RandomShuffle",), GRAPH_ZOO),
    Animal("graph_clock", "outside", (), GRAPH_ZOO),
    Animal("graph_scatter", "operation", ("ResourceScatterAdd",), GRAPH_ZOO),
    Animal("xla_dropout", "operation", ("RandomUniform",), GRAPH_ZOO),
    Animal("loop_noise", "graph", _RANDOM, GRAPH_ZOO),
    Animal("queue_of_tensors", "outside", ("AddV2",), GRAPH_ZOO),
    Animal("stale_reader", "race", (), GRAPH_ZOO),
    Animal("thread_branch", "sequence", (), GRAPH_ZOO),
    Animal("mirrored_shuffle", "data", (), GRAPH_ZOO),
)
CLEAN_GRAPHS = ("counter", "normalized", "noise_unused")
TRAININGS = (
    *(Animal(name, "data", zoo=TRAINING_ZOO) for name in ("saved_shuffled", "fed_by_threads")),
    Animal("helper_split", "outside", zoo=TRAINING_ZOO),
    Animal("noisy_step", "operation", ("RandomStandardNormal",), TRAINING_ZOO),
    Animal("compiled_shuffle", "operation", ("RandomShuffle",), TRAINING_ZOO),
)
TRAININGS_KERAS_2 = (
    Animal("compiled_dropout", "operation", ("RandomUniform",), TRAINING_ZOO),
    Animal(
        "mirrored_fit", "operation", ("RandomUniform",), TRAINING_ZOO, fresh=True
    ),  # collectives of one process clash
    Animal("kept_backup", "sequence", zoo=OBJECT_ZOO),
    Animal("epoch_order", "outside", zoo=TRAINING_ZOO),  # it looks at the first batch before
)
TRAININGS_KERAS_3 = (
    Animal("epoch_order", "data", zoo=TRAINING_ZOO),
    Animal("kept_backup", "outside", zoo=OBJECT_ZOO),
    *(
        Animal(name, "outside", zoo=TRAINING_ZOO)
        for name in ("compiled_dropout", "mirrored_fit", "augmenting_layers")  # the last has no cause with Keras 2
    ),
)
LOOPS = (
    *(Animal(name, "outside", zoo=LOOP_ZOO) for name in ("replayed", "named_run")),
    Animal("label_numbers", "outside", zoo=LOOP_ZOO, fresh=True),
    Animal("explorer", "sequence", zoo=LOOP_ZOO),
    Animal("enqueued", "race", zoo=LOOP_ZOO),
    Animal("recommender", "operation", ("ResourceScatterSub",), LOOP_ZOO),
    Animal("word_weights", "operation", ("DenseBincount",), LOOP_ZOO),
    Animal("drawn_in_graph", "outside", ("PythonFunction",), LOOP_ZOO),
)
CLEAN_LOOPS = ("gathered",)
STREAMS = (
    *(Animal(name, "data", zoo=STREAM_ZOO) for name in ("ragged_batches", "sparse_rows")),
    Animal("towers", "outside", zoo=STREAM_ZOO),
    Animal("resumed_iterator", "outside", ("RestoreV2",), STREAM_ZOO),
    Animal("mirrored_start", "operation", ("RandomStandardNormal",), STREAM_ZOO),
    Animal("replicas_with_generator", "operation", ("NonDeterministicInts",), STREAM_ZOO),
)
CLEAN_STREAMS = ("iterator",)
OBJECTS = (
    Animal("gumbel_head", "operation", ("RandomUniform",), OBJECT_ZOO),
    Animal("noisy_loss", "operation", _RANDOM, OBJECT_ZOO),
    Animal("switched", "operation", ("RandomUniformInt",), OBJECT_ZOO),
    # A graph even where TensorFlow runs eagerly, so its line is named and no operation in it.
    Animal("vectorized", "call", ("Call",), OBJECT_ZOO),
    Animal("drawn_under_xla", "operation", ("Multinomial",), OBJECT_ZOO),
    Animal("seeded_under_xla", "graph", ("TruncatedNormal",), OBJECT_ZOO),
    Animal("histogram", "operation", ("DenseBincount",), OBJECT_ZOO),
    Animal("boxed", "operation", ("SampleDistortedBoundingBoxV2",), OBJECT_ZOO),
    Animal("fit_until", "sequence", zoo=OBJECT_ZOO),
    Animal("frozen_mask", "outside", zoo=OBJECT_ZOO),
    Animal("columns_of_union", "outside", zoo=OBJECT_ZOO, fresh=True),
)
CLEAN_OBJECTS = ("alarmed",)
FRESH = (*PIPELINES, *SCRIPTS, *GRAPHS, *TRAININGS, *LOOPS, *STREAMS, *OBJECTS)
"""Programs that were written before anybody looked at how verdicts come about."""
FRESH_CLEAN = tuple(
    Animal(f"clean_{name}", "identical", zoo=zoo)
    for zoo, names in (
        (PIPELINE_ZOO, CLEAN_PIPELINES),
        (SCRIPT_ZOO, CLEAN_SCRIPTS),
        (GRAPH_ZOO, CLEAN_GRAPHS),
        (LOOP_ZOO, CLEAN_LOOPS),
        (STREAM_ZOO, CLEAN_STREAMS),
        (OBJECT_ZOO, CLEAN_OBJECTS),
    )
    for name in names
)


def lines(name: str, zoo: Path = ZOO) -> set[int]:
    """Return the numbers of the lines that are marked with a name."""
    return {n for n, line in enumerate(zoo.read_text().splitlines(), 1) if line.endswith(f"# {name}")}
