"""Whether the result for a sample depends on its batch: the measurements as a report. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from envlock.numerics.conditions import describe_conditions
from envlock.runtime.extent import Extent
from envlock.runtime.report import (
    ERROR,
    INFO,
    UNKNOWN,
    Evidence,
    Finding,
    Report,
    Severity,
    clean,
    count,
)

SOURCE = "docs/concepts/evidence.md"
TITLES = {
    "batch-size": "the size of the batch changes the bits",
    "batch-place": "the place in the batch changes the bits",
    "batch-neighbors": "the other rows of the batch change the bits",
    "batch-unstable": "two equal calls give different bits",
    "batch-failed": "a mode could not be measured",
    "modes-differ": "modes give different bits",
}
MIXED_WHY = (
    "no rounding: the model computes with values of the other rows, "
    "so an answer depends on what others ask at the time"
)
MIXED_FIX = (
    "none was found by measuring: compute each sample alone, or let the layer compute without the "
    "other rows (BatchNormalization: without `training=True`)"
)
WHY = "a request is answered with other bits when a server puts it into another batch"
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
MODES = ("eager", "graph", "xla", "predict")
"""How a model is called; the guest program has a function for each."""
LARGEST = 64
"""Rows of the largest batch, unless another size is requested."""
XLA, PREDICT = "xla", "predict"
CLASSES_SHOWN = 6
"""The classes of a mode that a message names; the page and JSON have all of them."""


@dataclass(frozen=True)
class Layer:
    """The first layer whose output for the sample differs between batches of two sizes, or why no
    layer is named.
    """

    between: tuple[int, int]
    name: str | None
    kind: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ModeBits:
    """The measurements in one mode: digests of the result for the sample.

    Attributes:
        mode: how the model was called: `eager`, `graph`, `xla` or `predict`.
        sizes: digests by the size of the batch.
        places: digests by the size, then by the place of the sample in the batch.
        neighbors: digests by the size, then by the kind of the other rows.
        unstable: the size of a batch whose second computation gave other bits.
        failed: why nothing was measured.
        layer: the first layer of a Keras model at which sizes differ.
        mixing: the first layer that computes with values of other rows.
        distances: the largest difference from the first result, and the largest number of that
            result, by what was changed: `sizes`, `places` or `neighbors`.
    """

    mode: str
    sizes: Mapping[int, str]
    places: Mapping[int, Mapping[int, str]]
    neighbors: Mapping[int, Mapping[str, str]]
    unstable: int | None = None
    failed: str | None = None
    layer: Layer | None = None
    mixing: Layer | None = None
    distances: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_mixed(self) -> bool:
        """Whether values of other rows enter the result: kernels are chosen by shapes, so nothing else
        can tell the neighbors in batches of one size apart.
        """
        return any(len(set(digests.values())) > 1 for digests in self.neighbors.values())

    @property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """The batch sizes in classes that give the same bits, the smallest first."""
        found: dict[str, list[int]] = {}
        for size, digest in sorted(self.sizes.items()):
            found.setdefault(digest, []).append(size)
        return tuple(tuple(sizes) for sizes in found.values())

    @property
    def class_texts(self) -> tuple[str, ...]:
        """The classes as text: `1`, `2..64`."""
        return tuple(show_sizes(sizes) for sizes in self.classes)

    @property
    def is_compared(self) -> bool:
        """Whether batches of at least two sizes were compared."""
        return self.unstable is None and self.failed is None and len(self.sizes) > 1

    @property
    def is_invariant(self) -> bool:
        """Whether everything that was compared has the same bits."""
        digests = set(self.sizes.values())
        for by_place in self.places.values():
            digests |= set(by_place.values())
        for by_name in self.neighbors.values():
            digests |= set(by_name.values())
        return self.is_compared and len(digests) == 1

    def is_steady_at(self, size: int) -> bool:
        """Return whether, in batches of this size, neither the place nor the other rows change the
        bits; both must have been measured.
        """
        digests = {*self.places.get(size, {}).values(), *self.neighbors.get(size, {}).values()}
        return len(digests) == 1


@dataclass(frozen=True)
class Remedy:
    """A measured remedy that makes the result independent of the batch in one mode."""

    mode: str
    text: str


@dataclass(frozen=True)
class InvarianceEvidence(Evidence):
    """What `envlock invariance` attaches to its report.

    Attributes:
        environment: the versions of the software that computed, by package.
        onednn: the variable that switches oneDNN on or off, as it was set; None for unset.
        modes: the measurements, mode by mode.
        switched: the same with oneDNN switched the other way, if that was measured.
        remedies: the remedies that help.
    """

    environment: Mapping[str, str]
    onednn: str | None
    modes: tuple[ModeBits, ...]
    switched: tuple[ModeBits, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "environment": dict(self.environment),
            "onednn": self.onednn,
            "modes": [render_mode(bits) for bits in self.modes],
            "switched": [render_mode(bits) for bits in self.switched],
            "remedies": [asdict(remedy) for remedy in self.remedies],
        }


def render_mode(bits: ModeBits) -> dict[str, object]:
    """Return JSON values for one mode."""
    distances = {}
    for kind, (far, largest) in bits.distances.items():
        distances[kind] = {"largest_difference": far, "of_values_up_to": largest}
    return {
        "mode": bits.mode,
        "invariant": bits.is_invariant,
        "classes": [list(sizes) for sizes in bits.classes],
        "sizes": {str(size): digest for size, digest in bits.sizes.items()},
        "places": {str(size): render_keys(found) for size, found in bits.places.items()},
        "neighbors": {str(size): render_keys(found) for size, found in bits.neighbors.items()},
        "unstable": bits.unstable,
        "failed": bits.failed,
        "layer": render_layer(bits.layer),
        "mixing": render_layer(bits.mixing),
        "distances": distances,
    }


def render_layer(layer: Layer | None) -> dict[str, object] | None:
    """Return JSON values for a layer."""
    if layer is None:
        return None
    return {**asdict(layer), "between": list(layer.between)}


def render_keys(digests: Mapping[int, str] | Mapping[str, str]) -> dict[str, str]:
    """Return digests with keys that JSON can have."""
    return {str(key): digest for key, digest in digests.items()}


def read_modes(answers: Iterable[Mapping[str, object]]) -> tuple[ModeBits, ...]:
    """Return the measurements in the answers of the guest program (envlock/guest/run_batches.py),
    mode by mode.
    """
    found: dict[str, ModeBits] = {}
    for answer in answers:
        mode = answer.get("mode")
        if not isinstance(mode, str):
            continue
        bits = found.setdefault(mode, ModeBits(mode, {}, {}, {}))
        found[mode] = add_answer(bits, answer)
    return tuple(found.values())


def add_answer(bits: ModeBits, answer: Mapping[str, object]) -> ModeBits:
    """Return the measurements of a mode with one more answer added."""
    unstable, failed, size = answer.get("unstable"), answer.get("failed"), answer.get("size")
    if isinstance(unstable, int):
        return replace(bits, unstable=unstable)
    if isinstance(failed, str):
        return replace(bits, failed=failed)
    if answer.get("mixing") is True:
        return replace(bits, mixing=read_layer({"between": [0, 0], **answer}))
    if "layer" in answer:
        return replace(bits, layer=read_layer(answer))
    digest = answer.get("digest")
    if not isinstance(size, int) or not isinstance(digest, str):
        return bits
    place, neighbors = answer.get("place"), answer.get("neighbors")
    kind = "sizes"
    if isinstance(place, int):
        kind = "places"
    elif isinstance(neighbors, str):
        kind = "neighbors"
    bits = add_distance(bits, kind, answer)
    if isinstance(place, int):
        by_place = {**bits.places.get(size, {}), place: digest}
        return replace(bits, places={**bits.places, size: by_place})
    if isinstance(neighbors, str):
        by_name = {**bits.neighbors.get(size, {}), neighbors: digest}
        return replace(bits, neighbors={**bits.neighbors, size: by_name})
    return replace(bits, sizes={**bits.sizes, size: digest})


def add_distance(bits: ModeBits, kind: str, answer: Mapping[str, object]) -> ModeBits:
    """Return the measurements with the distance of an answer, if none is larger."""
    far, largest = answer.get("far"), answer.get("largest")
    if not isinstance(far, float) or not isinstance(largest, float):
        return bits
    if far <= bits.distances.get(kind, (-1.0, 0.0))[0]:
        return bits
    return replace(bits, distances={**bits.distances, kind: (far, largest)})


def read_layer(answer: Mapping[str, object]) -> Layer | None:
    """Return the layer that an answer names; None if it names no layer."""
    between = answer.get("between")
    if not isinstance(between, list) or len(between) != 2:
        return None
    texts: dict[str, str] = {}
    for key in ("layer", "kind", "reason"):
        value = answer.get(key)
        if isinstance(value, str):
            texts[key] = value
    sizes = (int(between[0]), int(between[1]))
    return Layer(sizes, texts.get("layer"), texts.get("kind"), texts.get("reason"))


def find_remedies(evidence: InvarianceEvidence) -> tuple[Remedy, ...]:
    """Return remedies that make each mode independent of the batch, if the measurements show that;
    the cheapest first.
    """
    remedies = []
    steady = [bits.mode for bits in evidence.modes if bits.is_invariant]
    switched = {bits.mode: bits for bits in evidence.switched}
    for bits in evidence.modes:
        if bits.is_invariant or not bits.is_compared:
            continue
        texts = [find_padding(bits), find_fixed_size(bits)]
        other = switched.get(bits.mode)
        if other is not None and other.is_invariant:
            texts.append(
                f"set {ONEDNN}={turn_onednn(evidence.onednn)}: every batch has the same bits"
            )
        if bits.is_mixed and PREDICT in steady:
            texts.append(
                "answer with `predict`, or call the model with `training=False`: "
                "then every batch has the same bits"
            )
        if bits.mode == XLA and "graph" in steady:
            texts.append("compute without XLA: as a graph, every batch has the same bits")
        remedies += [Remedy(bits.mode, text) for text in texts if text is not None]
    return tuple(remedies)


def find_padding(bits: ModeBits) -> str | None:
    """Return the number of rows to which small batches must be padded so that all give the same
    bits; None if that does not help.

    All sizes from there to the largest must have been measured as equal; and if the place and the
    other rows were measured among them, they must change nothing.
    """
    largest = max(bits.sizes)
    (alike,) = (each for each in bits.classes if largest in each)
    least = largest
    while least - 1 in alike:
        least -= 1
    # To pad to the largest size only is another remedy, that of `find_fixed_size`.
    if least == largest:
        return None
    steady = [bits.is_steady_at(size) for size in bits.places if size >= least]
    if not steady or not all(steady):
        return None
    return f"pad smaller batches to {least} rows: from {least} to {largest} the bits are the same"


def find_fixed_size(bits: ModeBits) -> str | None:
    """Return that every batch must be padded to one size, if the place and the other rows change
    nothing there.
    """
    largest = max(bits.sizes)
    if not bits.is_steady_at(largest):
        return None
    return f"pad every batch to {largest} rows: there neither the place nor the other rows change the bits"


def turn_onednn(value: str | None) -> str:
    """Return the value of the variable that switches oneDNN the other way; when it is unset,
    present processors have it on.
    """
    if value == "0":
        return "1"
    return "0"


def judge_invariance(
    evidence: InvarianceEvidence,
    asked: Sequence[str],
    title: str,
    seed: int | None = None,
) -> Report[InvarianceEvidence]:
    """Return a report on whether the result depends on the batch.

    Args:
        evidence: the measurements.
        asked: the modes that the user named; empty if every mode was tried.
        title: the measured model, for the headline.
        seed: the seed that was set before the model was made or loaded.
    """
    evidence = replace(evidence, remedies=find_remedies(evidence))
    findings: list[Finding] = []
    for bits in evidence.modes:
        findings += judge_mode(bits, evidence, asked)
    measured = {bits.mode for bits in evidence.modes}
    findings += [
        report_failure(mode, "this model has no such mode", UNKNOWN)
        for mode in asked
        if mode not in measured
    ]
    compared = [bits for bits in evidence.modes if bits.is_compared]
    if not compared and not any(finding.severity == UNKNOWN for finding in findings):
        findings.append(report_failure("all modes", "nothing was compared", UNKNOWN))
    findings += compare_modes(compared)
    return Report(
        findings,
        command="invariance",
        headline=headline(evidence.modes, title) + describe_conditions(seed),
        subject=title,
        titles=TITLES,
        evidence=evidence,
        extent=Extent(runs=sum(len(bits.sizes) for bits in compared)),
    )


def judge_mode(
    bits: ModeBits, evidence: InvarianceEvidence, asked: Sequence[str]
) -> Iterable[Finding]:
    """Yield the findings in one mode."""
    if bits.failed is not None:
        # A mode that was only tried, such as XLA on a model with strings, decides nothing.
        yield report_failure(bits.mode, bits.failed, UNKNOWN if bits.mode in asked else INFO)
        return
    if bits.unstable is not None:
        yield Finding(
            "batch-unstable",
            UNKNOWN,
            bits.mode,
            message=f"{bits.mode}: two equal calls with {count(bits.unstable, 'row')} give different bits",
            why="what varies by itself says nothing about batches",
            fix="make the model deterministic first: `envlock repeat` and `envlock diverge` find the cause",
            source=SOURCE,
        )
        return
    fixes = [remedy.text for remedy in evidence.remedies if remedy.mode == bits.mode]
    fix, why = "\n".join(fixes), WHY
    if bits.is_mixed:
        fix, why = fix or MIXED_FIX, MIXED_WHY
    elif not fixes:
        fix = "none was found by measuring: compare results with a tolerance"
    if len(bits.classes) > 1:
        message = f"{bits.mode}: {len(bits.classes)} classes of bits: "
        message += show_classes(bits.class_texts) + describe_distance(bits, "sizes")
        message += describe_layer(bits.layer)
        yield Finding(
            "batch-size", ERROR, bits.mode, message=message, why=why, fix=fix, source=SOURCE
        )
    for rule, kind, words, measured, layer in (
        ("batch-place", "places", "places", bits.places, None),
        ("batch-neighbors", "neighbors", "other rows", bits.neighbors, bits.mixing),
    ):
        for size, digests in measured.items():
            number = len(set(digests.values()))
            if number > 1:
                message = f"{bits.mode}: {number} classes of bits for {len(digests)} {words} in batches of {size}"
                message += describe_distance(bits, kind) + describe_layer(layer)
                yield Finding(
                    rule, ERROR, bits.mode, message=message, why=why, fix=fix, source=SOURCE
                )


def describe_distance(bits: ModeBits, kind: str) -> str:
    """Return how far results are from one another, as the end of a sentence; empty if unknown."""
    if kind not in bits.distances:
        return ""
    far, largest = bits.distances[kind]
    return f"; largest difference {far:.2g}, of values up to {largest:.2g}"


def describe_layer(layer: Layer | None) -> str:
    """Return the first layer that differs, as the end of a sentence; empty if none is named."""
    if layer is None or layer.name is None:
        return ""
    text = f"; first in layer {clean(layer.name)}"
    if layer.kind:
        text += f" ({clean(layer.kind)})"
    return text


def report_failure(mode: str, reason: str, severity: Severity) -> Finding:
    """Return the finding that a mode was not measured."""
    return Finding(
        "batch-failed",
        severity,
        mode,
        message=f"{mode}: not measured: {clean(reason)}",
        why="what was not computed is not known to be the same",
        fix="give inputs with --inputs, or leave the mode out with --mode",
        source=SOURCE,
    )


def compare_modes(compared: Sequence[ModeBits]) -> Iterable[Finding]:
    """Yield a finding on the modes that give different bits for the smallest batch that all of them
    computed.
    """
    if len(compared) < 2:
        return
    common = set.intersection(*(set(bits.sizes) for bits in compared))
    if not common:
        return
    size = min(common)
    groups: dict[str, list[str]] = {}
    for bits in compared:
        groups.setdefault(bits.sizes[size], []).append(bits.mode)
    if len(groups) > 1:
        names = ["=".join(modes) for modes in groups.values()]
        yield Finding(
            "modes-differ",
            INFO,
            "modes",
            message=f"in batches of {size} these give different bits: {', '.join(names)}",
            why="eager code, a graph and XLA compute with different kernels, and `predict` without training phase",
            fix="serve in the mode in which the results were accepted",
            source=SOURCE,
        )


def headline(modes: Sequence[ModeBits], title: str) -> str:
    """Return the answer in one line: how much was compared, and in which modes the bits depend on the batch."""
    compared = [bits for bits in modes if bits.is_compared]
    if not compared:
        return f"nothing was compared of {clean(title)}"
    dependent = [clean(bits.mode) for bits in compared if not bits.is_invariant]
    sizes: set[int] = set()
    for bits in compared:
        sizes.update(bits.sizes)
    measured = f"{count(len(sizes), 'size')} of batches in {count(len(compared), 'mode')}"
    if not dependent:
        return f"{clean(title)} does not depend on the batch: {measured} have the same bits"
    return f"{clean(title)} depends on the batch in {', '.join(dependent)}: {measured} compared"


def show_classes(texts: Sequence[str]) -> str:
    """Return classes of sizes as text, only the first of many: `{1} {2..64}`."""
    shown = " ".join(f"{{{text}}}" for text in texts[:CLASSES_SHOWN])
    if len(texts) > CLASSES_SHOWN:
        shown += f" and {len(texts) - CLASSES_SHOWN} more"
    return shown


def show_sizes(sizes: Sequence[int]) -> str:
    """Return sizes as text, with consecutive ones as a range: `1, 4..8`."""
    runs: list[list[int]] = []
    for size in sizes:
        if runs and size == runs[-1][-1] + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    parts = []
    for run in runs:
        if len(run) > 2:
            parts.append(f"{run[0]}..{run[-1]}")
        else:
            parts += [str(size) for size in run]
    return ", ".join(parts)
