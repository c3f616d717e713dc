"""The states of TensorFlow, observed in a child process with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

from envlock.data.specifiers import matches_version
from envlock.guest import launch
from envlock.guest.proof import REPEATS
from envlock.lock.fact_models import Facts
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.recipe import find_recipe
from envlock.runtime.report import Finding, Severity

ON, OFF, PARTLY, UNKNOWN = "on", "off", "partly", "unknown"


class Observations(TypedDict, total=False):
    """The output of `guest/proof.py`; values that could not be observed are null or absent.

    Attributes:
        tensorflow: the version.
        clock: `ran` or `raised`: what tf.timestamp did.
        scatter, crop: the number of different results of an operation.
        operations: the names of the operations that ran for a product, a convolution and a softmax.
        tensor_float_32: whether a product on the GPU was rounded.
        compiled, keras_compiled: whether a function or a model was compiled by XLA.
        clusters: whether a part of a plain function ran as an XLA cluster.
        threads: how many threads ran one large operation, and many small ones.
        reasons: why an experiment gave no result, by experiment.
        failed: why TensorFlow or the user's lines could not run at all.
    """

    tensorflow: str
    clock: str | None
    scatter: int | None
    crop: int | None
    operations: list[str] | None
    tensor_float_32: bool | None
    compiled: bool | None
    keras_compiled: bool | None
    clusters: bool | None
    threads: list[int] | None
    reasons: dict[str, str]
    failed: str


@dataclass(frozen=True)
class ObservedState:
    """One state of TensorFlow, observed in its behaviour.

    Attributes:
        what: `op determinism`, `oneDNN`, `TF32`, `XLA`, `intra-op threads` or `inter-op threads`.
        state: `on`, `off`, `partly`, a number, or `unknown`.
        evidence: what TensorFlow did.
    """

    what: str
    state: str
    evidence: str

    def to_json(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"what": self.what, "state": self.state, "evidence": self.evidence}


def read_states(seen: Observations) -> list[ObservedState]:
    """Return the states that the observations of `guest/proof.py` show."""
    return [read(seen) for read in _READERS]


def _read_op_determinism(seen: Observations) -> ObservedState:
    what, clock, version = "op determinism", seen.get("clock"), seen["tensorflow"]
    scatter, crop = seen.get("scatter") or 0, seen.get("crop") or 0
    counts = []
    if scatter:
        counts.append(_describe_results("scatter_add", scatter))
    if crop:
        counts.append(_describe_results("crop_and_resize", crop))
    results = ", ".join(counts)
    # From 2.7 on op determinism rejects the clock, which is certain evidence. In 2.6 gradients of
    # crop_and_resize that differ show that it is off; before, they differ in any case.
    if clock == "raised" and scatter <= 1 and crop <= 1:
        return ObservedState(what, ON, f"tf.timestamp was rejected; {results}")
    if clock == "raised":
        return ObservedState(what, PARTLY, f"tf.timestamp was rejected, but {results}")
    if clock == "ran" and matches_version([">=2.7"], version):
        return ObservedState(
            what, OFF, f"tf.timestamp ran, which op determinism rejects; {results}"
        )
    if clock == "ran" and matches_version([">=2.6"], version) and crop > 1:
        return ObservedState(what, OFF, results)
    if clock == "ran":
        evidence = f"TensorFlow {version} has no operation that shows it on a CPU; {results}"
        return ObservedState(what, UNKNOWN, evidence)
    return _explain_unknown(what, "clock", seen)


def _describe_results(name: str, count: int) -> str:
    if count == 1:
        return f"{name} gave one result in {REPEATS} calls"
    return f"{name} gave {count} results in {REPEATS} calls"


def _read_onednn(seen: Observations) -> ObservedState:
    names = seen.get("operations")
    if not names:
        return _explain_unknown("oneDNN", "operations", seen)
    # TensorFlow's own operations for oneDNN have kept the name of its predecessor, MKL-DNN.
    state = ON if any(name.startswith("_Mkl") for name in names) else OFF
    evidence = f"a product, a convolution and a softmax ran as {', '.join(names)}"
    return ObservedState("oneDNN", state, evidence)


def _read_tf32(seen: Observations) -> ObservedState:
    is_rounded = seen.get("tensor_float_32")
    if is_rounded is None:
        return _explain_unknown("TF32", "tensor_float_32", seen, "no GPU is visible")
    state, what = (ON, "was rounded to 10 bits") if is_rounded else (OFF, "kept its 23 bits")
    return ObservedState("TF32", state, f"1 + 2**-12 {what} in a matrix product on the GPU")


def _read_xla(seen: Observations) -> ObservedState:
    experiments = {
        "compiled": seen.get("compiled"),
        "keras_compiled": seen.get("keras_compiled"),
        "clusters": seen.get("clusters"),
    }
    hits = [_XLA_EVIDENCE[name] for name, result in experiments.items() if result]
    if hits:
        return ObservedState("XLA", ON, "; ".join(hits))
    for name, result in experiments.items():
        if result is None:
            return _explain_unknown("XLA", name, seen)
    evidence = (
        "a function with strings, a Keras model that calls Python and a plain function "
        "ran without it"
    )
    return ObservedState("XLA", OFF, evidence)


_XLA_EVIDENCE = {
    "compiled": "a plain tf.function with strings did not compile",
    "keras_compiled": "a Keras model that calls Python did not compile",
    "clusters": "a part of a plain tf.function ran as an XLA cluster",
}


def _read_intra_threads(seen: Observations) -> ObservedState:
    return _read_threads(seen, "intra-op threads", 0, "one large operation")


def _read_inter_threads(seen: Observations) -> ObservedState:
    what = "inter-op threads"
    if seen.get("clusters"):
        return ObservedState(what, UNKNOWN, "XLA's threads cannot be distinguished from the pool")
    return _read_threads(seen, what, 1, "64 independent operations")


def _read_threads(seen: Observations, what: str, index: int, work: str) -> ObservedState:
    counts = seen.get("threads")
    if counts is None:
        return _explain_unknown(what, "threads", seen)
    count = counts[index]
    noun = "thread" if count == 1 else "threads"
    return ObservedState(what, str(count), f"{count} {noun} ran {work}")


def _explain_unknown(
    what: str, experiment: str, seen: Observations, otherwise: str = "not observed"
) -> ObservedState:
    return ObservedState(what, UNKNOWN, seen.get("reasons", {}).get(experiment) or otherwise)


_READERS: Sequence[Callable[[Observations], ObservedState]] = (
    _read_op_determinism,
    _read_onednn,
    _read_tf32,
    _read_xla,
    _read_intra_threads,
    _read_inter_threads,
)


def list_wanted_states(facts: Facts | None) -> dict[str, str]:
    """Return the wanted states: op determinism, and those that the facts of a lockfile determine."""
    states = {"op determinism": ON}
    if facts is None:
        return states
    environ, cpu = facts.environ or {}, facts.cpu
    if environ.get("TF_DETERMINISTIC_OPS") in ("0", "false"):
        states["op determinism"] = OFF
    onednn = str(environ.get("TF_ENABLE_ONEDNN_OPTS")).lower()
    if onednn in ("0", "false"):
        states["oneDNN"] = OFF
    elif onednn in ("1", "true"):
        states["oneDNN"] = ON
    if environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        states["TF32"] = OFF
    is_xla_unset = "TF_XLA_FLAGS" in environ and environ["TF_XLA_FLAGS"] is None
    if is_xla_unset and not environ.get("TF_FUNCTION_JIT_COMPILE_DEFAULT"):
        states["XLA"] = OFF
    if cpu is not None and cpu.intra_op_threads:
        states["intra-op threads"] = str(cpu.intra_op_threads)
    if cpu is not None and cpu.inter_op_threads:
        states["inter-op threads"] = str(cpu.inter_op_threads)
    return states


def find_deviations(
    shown: Sequence[ObservedState], asked: Mapping[str, str], tensorflow: str
) -> list[Finding]:
    """Return a finding for every state other than the wanted one; an unknown state is a warning."""
    findings = []
    for state in shown:
        want = asked.get(state.what)
        if want is None or state.state == want:
            continue
        # Without a GPU there is no TF32 to observe, and with XLA no thread pool.
        if state.state == UNKNOWN and state.what in ("TF32", "inter-op threads"):
            continue
        severity: Severity = "warning" if state.state == UNKNOWN else "error"
        findings.append(
            Finding(
                "proof",
                severity,
                state.what,
                message=f"{state.what}: {state.state}, wanted: {want} ({state.evidence})",
                why=_WHY[state.what],
                fix=_find_fix(state.what, want, tensorflow),
                source=f"observed in a child process with TensorFlow {tensorflow}",
            )
        )
    return findings


_WHY = {
    "op determinism": "Operations can give different bits in every run, without a message.",
    "oneDNN": "Other kernels compute products, convolutions and softmax, with different bits.",
    "TF32": "With TF32, float32 products are rounded to 10 bits on the GPU.",
    "XLA": "Compiled functions are fused, with different bits.",
    "intra-op threads": "The number of threads of an operation determines the order of its sums.",
    "inter-op threads": (
        "The number of parallel operations determines the order in which buffers are added."
    ),
}


_FIXED = "`envlock run` and `envlock.activate()` set it as locked"


def _find_fix(what: str, want: str, tensorflow: str) -> str:
    if what == "op determinism" and want == ON:
        return _find_recipe_fix(tensorflow)
    onednn = "1" if want == ON else "0"
    pool = what.partition("-")[0]
    call = f"tf.config.threading.set_{pool}_op_parallelism_threads({want})"
    fixes = {
        "oneDNN": f"export TF_ENABLE_ONEDNN_OPTS={onednn}",
        "TF32": "tf.config.experimental.enable_tensor_float_32_execution(False)",
        "XLA": (
            "unset TF_XLA_FLAGS TF_FUNCTION_JIT_COMPILE_DEFAULT, "
            "and pass jit_compile=False to compile()"
        ),
        "intra-op threads": f"export TF_NUM_INTRAOP_THREADS={want}, or {call}; {_FIXED}",
        "inter-op threads": f"export TF_NUM_INTEROP_THREADS={want}, or {call}; {_FIXED}",
    }
    return fixes.get(what, "remove the setting that turns it on")


def _find_recipe_fix(tensorflow: str) -> str:
    """Return how to switch op determinism on in a version of TensorFlow."""
    recipe = find_recipe(tensorflow)
    if recipe is None:
        return "install a release of TensorFlow"
    lines = [f"export {name}={value}" for name, value in sorted(recipe.set.items())]
    lines += recipe.calls
    if not lines:
        return recipe.remarks[0]
    return f"call envlock.activate() on line 1, which does: {' and '.join(lines)}"


TIMEOUT = 300.0
"""Seconds: 4 are usual, half of them for `import tensorflow`."""


def observe(python: Path | None, setup: str | None, timeout: float = TIMEOUT) -> Observations:
    """Return what `guest/proof.py` observes in an interpreter after running the lines of `setup`.

    Raises:
        UsageError: there is no such interpreter, or the lines themselves fail.
        FactError: TensorFlow crashed, or did not answer in time; the message has its last lines.
    """
    words = launch.build_text_arguments(launch.read("proof"), {"setup": setup})
    ended = launch.ask_python(words, python, timeout=timeout)
    if ended.code is None:
        raise FactError(
            f"the probe operations did not finish within {timeout:g} s", hint="try again"
        )
    if not ended.answers:
        raise FactError(
            f"TensorFlow {ended.ending} before the probe operations finished: {ended.last_words}",
            hint="run `envlock doctor` without `--prove` to find the variable or flag",
        )
    seen = cast("Observations", ended.answers[-1])
    if "failed" not in seen:
        return seen
    if setup is not None:
        raise UsageError(
            f"the lines of `--with`, or the import of TensorFlow, fail: {seen['failed']}"
        )
    hint = "name the interpreter of an environment with TensorFlow: `--python .venv/bin/python`"
    raise FactError(f"TensorFlow cannot be imported: {seen['failed']}", hint=hint)
