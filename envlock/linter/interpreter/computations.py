"""What functions of libraries compute, and what functions may do of which nothing is known."""

from __future__ import annotations

from collections.abc import Iterable

from envlock.linter.interpreter.arguments import Call
from envlock.linter.interpreter.containers import Containers
from envlock.linter.interpreter.values import (
    Constant,
    Library,
    Made,
    Sequence,
    Table,
    Taints,
    Value,
    as_mode,
    in_mode,
)
from envlock.linter.names import NAMING_KEYWORDS

SAVERS = ("dump", "save", "savetxt", "savez", "savez_compressed")
MEASURES = ("size", "shape", "rank")
WHOLE = frozenset(
    f"tf.{name}"
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
)
CASTS = ("cast", "to_int32", "to_int64")
TEXTS = ("str", "bytes", "object")


def is_text(kind: Value | None) -> bool:
    """Return whether arrays of a type hold text."""
    if isinstance(kind, Library):
        return kind.name.rpartition(".")[2].rstrip("_") in TEXTS
    if not isinstance(kind, Constant):
        return False
    word = str(kind.value).lstrip("<>|=")
    return word in TEXTS or word[:1] in ("U", "S", "O")


class Computations(Containers):
    """Calls of functions that compute, or that are not known."""

    def call_unknown(self, call: Call, name: str = "") -> Value:
        """Return what a function returns that is not seen: it may do anything with what it is
        given.
        """
        # A call whose result nothing uses must do something: MPI's Recv fills what it is given.
        if call.discarded and not name.endswith((*SAVERS, "imsave", "imwrite")):
            self.fill(*call.list_values())
        self.count(*self.use_functions(call))
        self.hand_out(call)
        # Classes begin with a capital (PEP 8).
        if name and name.rpartition(".")[2][:1].isupper():
            made = self.make(name, call.node)
            made.arguments, made.keywords = call.arguments, call.keywords
            return made.add_taints(self.collect_all_taints(call.list_values()))
        # `name=`, `title=`: a number by chance in it only looks otherwise.
        for word, value in call.keywords.items():
            if word in NAMING_KEYWORDS:
                self.ledger.show(self.collect_taints(value))
        return Value(self.collect_all_taints(call.list_data()))

    def hand_out(self, call: Call) -> None:
        """Let chances count that are given to what is not seen."""
        values = call.list_data()
        self.count(*values)
        self.apply_gradients(values)
        for value in values:
            if isinstance(value, Sequence):  # it may be filled there
                value.most = value.items = None
            elif isinstance(value, Table):
                value.most = None
        if not self.loops:
            return
        # `dump(record, file)` in a loop by chance: the file keeps the order of the rounds.
        orders = in_mode(self.collect_all_taints(values), "each")
        for value in values:
            if isinstance(value, Made) and "writer" in value.marks:
                self.ledger.count(as_mode(orders & self.find_orders_since(value.born), "value"))

    def apply_gradients(self, values: Iterable[Value]) -> None:
        """Note a training along gradients of a graph that are handed to what is not seen."""
        raise NotImplementedError

    def compute(self, name: str, call: Call) -> Value:
        """Return what is computed from values; a call whose result nothing uses must have an
        effect.
        """
        self.use_functions(call)
        values = call.list_values()
        word = name.rpartition(".")[2]
        if word[:1].isupper() and not name.startswith("numpy."):
            made = self.make(name, call.node)
            if word.endswith("Writer"):  # TFRecordWriter, SummaryWriter
                made.marks.add("writer")
            made.arguments, made.keywords = call.arguments, call.keywords
            return made.add_taints(self.collect_all_taints(values))
        self.change_in_place(name, call)
        if word in MEASURES:  # how large something is does not depend on what is in it
            return Value(kind="whole")
        if name == "numpy.dtype":
            return call.get_first()
        kind = self.find_kind(name, values)
        if kind == "tensor" and is_text(call.get("dtype", 1)):
            kind = "text"
        taints = self.collect_array_taints(values)
        if kind == "letters":
            return Value(self.collect_all_taints(values), kind)
        if kind and self.is_of_integers(call):
            # A set of whole numbers has one order; what was counted in the order of a set keeps it.
            taints = frozenset(
                each for each in taints if each[0].rule != "ENV304" or each[1] == "value"
            )
        return Value(taints, kind)

    def is_of_integers(self, call: Call) -> bool:
        """Return whether a call is given a type of whole numbers: `dtype="int64"`, `np.int32`."""
        words = [str(call.get_constant("dtype", 1))]
        words += [each.name for each in call.list_values() if isinstance(each, Library)]
        return any("int" in word for word in words)

    def change_in_place(self, name: str, call: Call) -> None:
        """Note what a function does with arrays that it is given: add to one, fill it, write it
        away.
        """
        # `np.add.at(sums, indices, values)` adds to its first argument, one value after the other.
        if name.startswith("numpy.") and name.endswith(".at") and call.arguments:
            for value in call.arguments[1:]:
                self.teach(call.get_first(), value)
        elif call.discarded:
            if name.rpartition(".")[2] not in SAVERS:
                self.fill(*call.list_values())
            self.hand_out(call)
        self.fill(*(value for word, value in call.keywords.items() if word in ("out", "dst")))

    def find_kind(self, name: str, values: Iterable[Value]) -> str:
        """Return what kind of value a function of a library computes."""
        word = name.rpartition(".")[2]
        if name.startswith("string."):
            return "letters"
        # Each place once, so that a sum scattered there has one order: ENV401/good_unique.py.
        given = list(values)
        if word == "unique" or (name == "tf.where" and len(given) == 1):
            return "unique"
        if word in CASTS and given and given[0].kind == "unique":
            return "unique"
        # Ones and zeros count mostly, and whole numbers add up alike in any order.
        if word in ("ones", "ones_like", "zeros", "zeros_like"):
            return "whole"
        if any(isinstance(each, Library) and each.name in WHOLE for each in given):
            return "whole"
        if "path" in name:
            return "text"
        if name.startswith(("numpy.", "tf.", "keras.", "torch.")):
            return "tensor"
        return ""

    def show(self, call: Call, taints: Taints) -> None:
        """Let values be shown: orders and what was picked only look otherwise."""
        self.ledger.show(taints)
