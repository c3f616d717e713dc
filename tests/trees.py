"""Hypothesis strategies for fact trees, and changing one leaf of one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "version", "flags", "x-1", "TF_X", "cpu", "tensorflow", "packages", "environ"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from(["", "1", "2.17.0+nv", "x"])
)
LEAVES = SCALARS | st.lists(SCALARS, max_size=3)
TREES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    NAMES,
    st.recursive(LEAVES, lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4), max_leaves=8),
    max_size=4,
)


def put(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of a tree with another value at `path`; `...` removes it."""
    name, dot, rest = path.partition(".")
    if dot:
        return {**tree, name: put(tree[name], rest, value)}
    without = {key: item for key, item in tree.items() if key != name}
    return without if value is ... else {**without, name: value}
