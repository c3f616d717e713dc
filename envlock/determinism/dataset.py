"""`envlock.lint_dataset(ds)`: the only file that asks TensorFlow; it is imported when the function is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envlock.determinism.pipeline import DatasetFinding, digest, findings, graph_of, texts
from envlock.guest.datasets import plain, serialized
from envlock.runtime.errors import UsageError


@dataclass(frozen=True)
class DatasetReport:
    """What is known of a pipeline.

    Attributes:
        findings: errors first.
        digest: the same for pipelines of the same operations, settings and constants, in every process of one
            TensorFlow. What Python functions in it do does not enter.
    """

    findings: list[DatasetFinding]
    digest: str

    @property
    def repeatable(self) -> bool:
        """Whether nothing is found that makes elements or their order differ from run to run."""
        return all(finding.severity != "error" for finding in self.findings)

    def __str__(self) -> str:
        lines = texts(self.findings) or ["nothing found"]
        return "\n".join([*lines, f"digest {self.digest}"])


def lint_dataset(dataset: Any) -> DatasetReport:
    """Return what makes a tf.data.Dataset give other elements, or another order, from run to run.

    Its graph is looked at; no element is read. Seeds are part of the graph, so set them before the dataset is made.

    Raises:
        UsageError: it is no tf.data.Dataset, or this TensorFlow does not show its graph.
    """
    try:
        import tensorflow as tf
    except ImportError:
        raise UsageError("lint_dataset needs TensorFlow, which is not installed here") from None
    if not isinstance(dataset, tf.data.Dataset):
        hint = "pass the dataset itself, before it is distributed or iterated over"
        raise UsageError(f"lint_dataset wants a tf.data.Dataset, not {type(dataset).__name__}", hint=hint)
    try:
        data = serialized(tf, dataset)
    except (AttributeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UsageError(f"TensorFlow {tf.__version__} does not show the graph of this dataset: {reason}") from None
    graph = graph_of(plain(data, getattr(dataset.options(), "deterministic", None)))
    return DatasetReport(findings(graph, switched_on=_switched_on()), digest(graph))


def _switched_on() -> bool:
    try:
        from tensorflow.python.framework.config import is_op_determinism_enabled
    except ImportError:  # private, and may go
        return False
    return bool(is_op_determinism_enabled())
