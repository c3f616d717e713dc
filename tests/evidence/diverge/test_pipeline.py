"""The rules on graphs of datasets, on graphs written by hand; the real ones are in tests/real."""

from __future__ import annotations

from dataclasses import replace

from envlock.data.lint_tables import find_reference, load_dataset_rules
from envlock.evidence.diverge.pipeline import Body, Graph, Node, Value, digest, findings

RETURN = Node("end", "_Retval", ("last",))


def const(name: str, value: Value) -> Node:
    return Node(name, "Const", attributes={"value": value})


def mapped(op: str, *inner: Node, calls: int = 4, **attributes: Value) -> Graph:
    """Return a pipeline that maps a function with some operations."""
    nodes = (Node("source", "RangeDataset"), const("calls", calls))
    last = Node("last", op, ("source", "calls"), attributes, {"f": "function"})
    return Graph(Body((*nodes, last, RETURN)), {"function": Body(inner, ("x",), ("out",))})


def shuffled(seed: int, seed2: int, reshuffle: bool = False) -> Graph:
    constants = (const("buffer", 9), const("seed", seed), const("seed2", seed2))
    attributes = {"reshuffle_each_iteration": reshuffle}
    last = Node("last", "ShuffleDatasetV3", ("source", "buffer", "seed:0", "seed2", "generator"), attributes)
    return Graph(Body((Node("source", "RangeDataset"), *constants, last, RETURN)))


UNIFORM = Node("out", "RandomUniform", ("x",), {"seed": 7, "seed2": 3})
PARALLEL = "ParallelMapDatasetV2"


GRAPHS = {
    "a shuffle without a seed": (shuffled(0, 0), ["ENV501"]),
    "a shuffle with one": (shuffled(0, 5), []),
    "a shuffle that is another each time": (shuffled(0, 5, reshuffle=True), ["ENV502"]),
    "random numbers in turn": (mapped("MapDataset", UNIFORM), ["ENV506"]),
    "without a seed": (mapped("MapDataset", replace(UNIFORM, attributes={"seed": 0, "seed2": 0})), ["ENV505"]),
    "in parallel": (mapped(PARALLEL, UNIFORM), ["ENV504"]),
    "in parallel by one": (mapped(PARALLEL, UNIFORM, calls=1), ["ENV506"]),
    "in parallel by an unknown number": (
        Graph(Body((Node("last", PARALLEL, functions={"f": "function"}),)), {"function": Body((UNIFORM,))}),
        ["ENV504"],
    ),
    "a generator": (mapped(PARALLEL, Node("out", "RngReadAndSkip")), ["ENV507"]),
    "a variable": (mapped(PARALLEL, Node("out", "ReadVariableOp")), []),
    "a call": (mapped(PARALLEL, Node("out", "StatefulPartitionedCall")), []),
    "Python in parallel": (mapped(PARALLEL, Node("out", "EagerPyFunc")), ["ENV508"]),
    "Python in turn": (mapped("MapDataset", Node("out", "EagerPyFunc")), ["ENV509"]),
    "in any order": (mapped(PARALLEL, deterministic=b"false"), ["ENV503"]),
    "in the order of the options": (mapped(PARALLEL, deterministic=b"default"), []),
    "sloppy": (mapped("ParallelInterleaveDataset", sloppy=True), ["ENV503"]),
    "in any order, by the options": (Graph(Body(()), {}, deterministic=False), ["ENV503"]),
    "a source of numbers": (Graph(Body((const("z", 0), Node("last", "RandomDatasetV2", ("z", "z"))))), ["ENV510"]),
    "a service": (Graph(Body((Node("last", "DataServiceDatasetV4"),))), ["ENV511"]),
}


def test_each_finding() -> None:
    found = {name: [each.rule for each in findings(graph, switched_on=False)] for name, (graph, _) in GRAPHS.items()}
    assert found == {name: rules for name, (_, rules) in GRAPHS.items()}
    assert {rule for rules in found.values() for rule in rules} == set(load_dataset_rules())


def test_op_determinism_mends_threads_and_no_missing_seed() -> None:
    random = mapped(PARALLEL, replace(UNIFORM, attributes={"seed": 0, "seed2": 0}))
    assert [(each.rule, each.severity) for each in findings(random, switched_on=True)] == [
        ("ENV505", "error"),
        ("ENV504", "info"),
    ]


def test_functions_that_call_functions_are_looked_into() -> None:
    graph = mapped(PARALLEL, Node("out", "PartitionedCall", ("x",), {}, {"f": "inner"}))
    functions = {**graph.functions, "inner": Body((UNIFORM, Node("self", "PartitionedCall", (), {}, {"f": "inner"})))}
    (found,) = findings(Graph(graph.main, functions), switched_on=False)
    assert (found.rule, found.where.operation, found.message) == (
        "ENV504",
        "last",
        f"RandomUniform runs in parallel in {PARALLEL}",
    )
    assert digest(Graph(graph.main, functions)) == digest(Graph(graph.main, functions))


def renamed(graph: Graph) -> Graph:
    """Return the same graph under other names, in another order, with other unstable attributes."""

    def body(old: Body) -> Body:
        nodes = [
            Node(
                f"n_{node.name}",
                node.op,
                tuple(f"n_{each}" for each in node.inputs),
                {**node.attributes, "metadata": b"another", "_private": 1},
                {key: f"f_{name}" for key, name in node.functions.items()},
            )
            for node in reversed(old.nodes)
        ]
        return Body(
            tuple(nodes), tuple(f"n_{each}" for each in old.arguments), tuple(f"n_{each}" for each in old.returns)
        )

    return Graph(body(graph.main), {f"f_{name}": body(each) for name, each in graph.functions.items()})


def test_the_digest_is_about_what_is_done_and_not_how_it_is_called() -> None:
    graphs = [shuffled(0, 0), shuffled(0, 5), shuffled(5, 0), mapped(PARALLEL, UNIFORM), mapped("MapDataset", UNIFORM)]
    graphs += [
        mapped(PARALLEL, replace(UNIFORM, attributes={"seed": 7, "seed2": 4})),
        mapped(PARALLEL, UNIFORM, calls=2),
    ]
    digests = [digest(graph) for graph in graphs]
    assert len(set(digests)) == len(graphs)
    assert [digest(renamed(graph)) for graph in graphs] == digests


def test_a_long_pipeline_is_no_deep_recursion() -> None:
    nodes = [Node("0", "RangeDataset")]
    nodes += [Node(str(number), "MapDataset", (str(number - 1),)) for number in range(1, 20_000)]
    assert digest(Graph(Body(tuple(nodes)))).startswith("sha256:")


def test_every_rule_can_be_followed_to_its_source() -> None:
    for row in load_dataset_rules().values():
        assert find_reference(row.source).startswith("https://") or "determinism_sources.toml" in find_reference(
            row.source
        )
