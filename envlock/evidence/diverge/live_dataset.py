"""`envlock.lint_dataset(ds)`: the only file that asks TensorFlow; it is imported when the function
is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from envlock.data.lint_tables import load_dataset_rules
from envlock.evidence.diverge.pipeline import Graph, digest, findings, graph_of
from envlock.guest.dataset_graphs import has_op_determinism, parse_graph, serialize_graph
from envlock.runtime.errors import UsageError
from envlock.runtime.report import ERROR, Evidence, Report, count_severities


@dataclass(frozen=True)
class DatasetEvidence(Evidence):
    """The digest of a pipeline's operations, settings and constants."""

    digest: str

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {"digest": self.digest}


def lint_dataset(dataset: Any) -> Report[DatasetEvidence]:
    """Return what makes a tf.data.Dataset give different elements, or a different order, from run
    to run.

    Its graph is read, but no elements are. Seeds are part of the graph, so set them before the
    dataset is created. The report matches unless a finding is an error. The attachment `digest` is
    the same for pipelines with the same operations, settings and constants, in every process with
    the same TensorFlow; the content of Python functions in a pipeline does not count.

    Raises:
        UsageError: it is not a tf.data.Dataset, or this TensorFlow cannot serialize its graph.
    """
    try:
        # An optional package, and the user's: 2 s, which the other linters do without.
        import tensorflow as tf
    except ImportError:
        raise UsageError("lint_dataset needs TensorFlow, which is not installed here") from None
    if not isinstance(dataset, tf.data.Dataset):
        hint = "pass the dataset before it is distributed or iterated over"
        raise UsageError(
            f"lint_dataset needs a tf.data.Dataset, not {type(dataset).__name__}", hint=hint
        )
    try:
        data = serialize_graph(tf, dataset)
    except (AttributeError, tf.errors.OpError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UsageError(
            f"TensorFlow {tf.__version__} does not show the graph of this dataset: {reason}"
        ) from None
    graph = graph_of(parse_graph(data, getattr(dataset.options(), "deterministic", None)))
    return report_of(graph, switched_on=has_op_determinism())


def report_of(graph: Graph, *, switched_on: bool) -> Report[DatasetEvidence]:
    """Return what a pipeline's graph says; `switched_on`: op determinism is."""
    found = findings(graph, switched_on=switched_on)
    answer = "not repeatable" if any(each.severity == ERROR for each in found) else "repeatable"
    return Report(
        found,
        command="lint_dataset",
        headline=f"{answer}: {count_severities(found) or 'no findings'}",
        notes=[f"digest {digest(graph)}"],
        titles={rule: row.title for rule, row in load_dataset_rules().items()},
        evidence=DatasetEvidence(digest(graph)),
        breaking=(ERROR,),
    )
