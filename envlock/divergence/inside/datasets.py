"""The graphs of the tf.data pipelines that a run reads from, for the dataset linter."""

from __future__ import annotations

from contextlib import contextmanager

from envlock.determinism import graphs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

    from envlock.divergence.inside.places import Places

    Place = Tuple[str, int, str]

LIMIT = 8
LARGEST = 4 << 20  # bytes of a graph: one that holds its data as a constant says no more


class Datasets:
    """Collects each pipeline that is iterated over, once."""

    def __init__(self, places: Places) -> None:
        """`places` finds the user's lines."""
        self._places = places
        self._graphs: Dict[Tuple[bytes, Optional[bool]], Optional[Place]] = {}

    @contextmanager
    def seen(self, tf: Any, quietly: Callable[[], Any]) -> Iterator[None]:
        """See what iterators are made of; `quietly` gives a context in which our own operations are not traced."""
        owner = tf.data.Dataset
        original = owner.__iter__

        def iterate(dataset: Any) -> Any:
            with quietly():
                self._take(tf, dataset)
            return original(dataset)

        owner.__iter__ = iterate
        try:
            yield
        finally:
            owner.__iter__ = original

    def _take(self, tf: Any, dataset: Any) -> None:
        if len(self._graphs) >= LIMIT or not tf.executing_eagerly():
            return
        try:
            data = graphs.serialized(tf, dataset)
            ordered = getattr(dataset.options(), "deterministic", None)
        except Exception:  # private, and there are datasets that cannot be written
            return
        if len(data) <= LARGEST:
            self._graphs.setdefault((data, ordered), self._places.here(3))

    def to_json(self) -> List[Dict[str, Any]]:
        """Return each graph with the line at which it was read, as `pipeline.Graph` has it."""
        return [{"place": place, "graph": graphs.plain(*key)} for key, place in self._graphs.items()]
