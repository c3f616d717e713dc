"""What TensorFlow shows by what it does, in a child process with a bounded wait: states, and what is not as asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envlock.data.determinism import holds
from envlock.guest import launch
from envlock.guest.proof import REPEATS
from envlock.lock.facts import Facts
from envlock.runtime.errors import FactError, UsageError
from envlock.runtime.recipe import recipe_for
from envlock.runtime.report import Finding

ON, OFF, PARTLY, UNKNOWN = "on", "off", "partly", "unknown"


@dataclass(frozen=True)
class Shown:
    """One state, told by behaviour.

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


def states(seen: Mapping[str, Any]) -> list[Shown]:
    """Return what the observations of `guest/proof.py` say."""
    return [read(seen) for read in _READERS]


def _op_determinism(seen: Mapping[str, Any]) -> Shown:
    what, clock, version = "op determinism", seen.get("clock"), seen["tensorflow"]
    noisy = any(seen.get(key, 0) > 1 for _, key in _NOISY)
    results = ", ".join(_results(name, seen[key]) for name, key in _NOISY if seen.get(key))
    if clock == "raised" and not noisy:
        return Shown(what, ON, f"tf.timestamp was rejected; {results}")
    if clock == "raised":
        return Shown(what, PARTLY, f"tf.timestamp was rejected, but {results}")
    if clock == "ran" and holds([">=2.7"], version):
        return Shown(what, OFF, f"tf.timestamp ran, which op determinism rejects; {results}")
    if clock == "ran" and holds([">=2.6"], version) and seen.get("crop", 0) > 1:
        return Shown(what, OFF, results)
    if clock == "ran":
        return Shown(
            what,
            UNKNOWN,
            f"TensorFlow {version} has no operation that shows it on a CPU; {results}",
        )
    return _untold(what, "clock", seen)


def _results(name: str, count: int) -> str:
    return f"{name} gave {'one result' if count == 1 else f'{count} results'} in {REPEATS} calls"


_NOISY = (("scatter_add", "scatter"), ("crop_and_resize", "crop"))


def _onednn(seen: Mapping[str, Any]) -> Shown:
    names = seen.get("operations")
    if not names:
        return _untold("oneDNN", "operations", seen)
    rewritten = [name for name in names if name.startswith("_Mkl")]
    return Shown(
        "oneDNN",
        ON if rewritten else OFF,
        f"a product, a convolution and a softmax ran as {', '.join(names)}",
    )


def _tf32(seen: Mapping[str, Any]) -> Shown:
    rounded = seen.get("tensor_float_32")
    if rounded is None:
        return _untold("TF32", "tensor_float_32", seen, "no GPU is visible")
    did = "was rounded to 10 bits" if rounded else "kept its 23 bits"
    return Shown("TF32", ON if rounded else OFF, f"1 + 2**-12 {did} in a matrix product on the GPU")


def _xla(seen: Mapping[str, Any]) -> Shown:
    facts = {
        "compiled": "a plain tf.function with strings did not compile",
        "keras_compiled": "a Keras model that calls Python did not compile",
        "clusters": "a part of a plain tf.function ran as an XLA cluster",
    }
    hits = [sentence for key, sentence in facts.items() if seen.get(key)]
    if hits:
        return Shown("XLA", ON, "; ".join(hits))
    if any(seen.get(key) is None for key in facts):
        return _untold("XLA", next(key for key in facts if seen.get(key) is None), seen)
    return Shown(
        "XLA",
        OFF,
        "a function with strings, a Keras model that calls Python and a plain function ran without it",
    )


def _intra(seen: Mapping[str, Any]) -> Shown:
    return _threads(seen, "intra-op threads", 0, "one large operation")


def _inter(seen: Mapping[str, Any]) -> Shown:
    if seen.get("clusters"):
        return Shown(
            "inter-op threads", UNKNOWN, "XLA's threads cannot be distinguished from the pool"
        )
    return _threads(seen, "inter-op threads", 1, "64 independent operations")


def _threads(seen: Mapping[str, Any], what: str, place: int, work: str) -> Shown:
    counts = seen.get("threads")
    if counts is None:
        return _untold(what, "threads", seen)
    return Shown(
        what,
        str(counts[place]),
        f"{counts[place]} {'thread' if counts[place] == 1 else 'threads'} ran {work}",
    )


def _untold(
    what: str, experiment: str, seen: Mapping[str, Any], otherwise: str = "not observed"
) -> Shown:
    return Shown(what, UNKNOWN, seen.get("reasons", {}).get(experiment) or otherwise)


_READERS: Sequence[Callable[[Mapping[str, Any]], Shown]] = (
    _op_determinism,
    _onednn,
    _tf32,
    _xla,
    _intra,
    _inter,
)


def wanted(facts: Facts | None) -> dict[str, str]:
    """Return the states that are asked for: op determinism, and what a lock's facts settle."""
    asked = {"op determinism": ON}
    if facts is None:
        return asked
    environ, cpu = facts.environ or {}, facts.cpu
    if environ.get("TF_DETERMINISTIC_OPS") in ("0", "false"):
        asked["op determinism"] = OFF
    onednn = {"0": OFF, "1": ON, "false": OFF, "true": ON}.get(
        str(environ.get("TF_ENABLE_ONEDNN_OPTS")).lower()
    )
    if onednn:
        asked["oneDNN"] = onednn
    if environ.get("NVIDIA_TF32_OVERRIDE") == "0":
        asked["TF32"] = OFF
    if (
        "TF_XLA_FLAGS" in environ
        and environ["TF_XLA_FLAGS"] is None
        and not environ.get("TF_FUNCTION_JIT_COMPILE_DEFAULT")
    ):
        asked["XLA"] = OFF
    for what, key in (
        ("intra-op threads", "intra_op_threads"),
        ("inter-op threads", "inter_op_threads"),
    ):
        if getattr(cpu, key, None):
            asked[what] = str(getattr(cpu, key))
    return asked


def missed(shown: Sequence[Shown], asked: Mapping[str, str], tensorflow: str) -> list[Finding]:
    """Return a finding for every state that is not the one asked for; what is unknown is a warning."""
    found = []
    for each in shown:
        want = asked.get(each.what)
        if (
            want is None
            or each.state == want
            or (each.state == UNKNOWN and each.what in ("TF32", "inter-op threads"))
        ):
            continue
        found.append(
            Finding(
                "proof",
                "warning" if each.state == UNKNOWN else "error",
                each.what,
                f"{each.what}: {each.state}, wanted: {want} ({each.evidence})",
                _WHY[each.what],
                _fix(each.what, want, tensorflow),
                f"observed in a child process with TensorFlow {tensorflow}",
            )
        )
    return found


_WHY = {
    "op determinism": "Operations can give different bits in every run, without a message.",
    "oneDNN": "Other kernels compute products, convolutions and softmax, with different bits.",
    "TF32": "With TF32, float32 products are rounded to 10 bits on the GPU.",
    "XLA": "Compiled functions are fused, with different bits.",
    "intra-op threads": "The number of threads of an operation determines the order of its sums.",
    "inter-op threads": "The number of parallel operations determines the order in which buffers are added.",
}


_FIXED = "`envlock run` and `envlock.activate()` set it as locked"


def _fix(what: str, want: str, tensorflow: str) -> str:
    if what == "op determinism" and want == ON:
        recipe = recipe_for(tensorflow)
        if recipe is None:
            return "install a release of TensorFlow"
        lines = [
            *(f"export {name}={value}" for name, value in sorted(recipe.set.items())),
            *recipe.calls,
        ]
        return (
            f"call envlock.activate() on line 1, which does: {' and '.join(lines)}"
            if lines
            else recipe.remarks[0]
        )
    number = f"set_{what[:5]}_op_parallelism_threads({want})"
    return {
        "oneDNN": f"export TF_ENABLE_ONEDNN_OPTS={'1' if want == ON else '0'}",
        "TF32": "tf.config.experimental.enable_tensor_float_32_execution(False)",
        "XLA": "unset TF_XLA_FLAGS TF_FUNCTION_JIT_COMPILE_DEFAULT, and pass jit_compile=False to compile()",
        "intra-op threads": f"export TF_NUM_INTRAOP_THREADS={want}, or tf.config.threading.{number}; {_FIXED}",
        "inter-op threads": f"export TF_NUM_INTEROP_THREADS={want}, or tf.config.threading.{number}; {_FIXED}",
    }.get(what, "remove the setting that turns it on")


TIMEOUT = 300.0  # seconds: 4 are usual, half of that is `import tensorflow`


def observe(python: Path | None, setup: str | None, timeout: float = TIMEOUT) -> dict[str, Any]:
    """Return what `guest/proof.py` sees in the interpreter `python`, after running the lines of `setup`.

    Raises:
        UsageError: there is no such interpreter, or the lines themselves fail.
        FactError: TensorFlow died, or did not answer in time; the message holds its last words.
    """
    ended = launch.ask_python(
        launch.text(launch.read("proof"), {"setup": setup}), python, timeout=timeout
    )
    if ended.code is None:
        raise FactError(
            f"the probe operations did not finish within {timeout:g} s", hint="try again"
        )
    if not ended.answers:
        raise FactError(
            f"TensorFlow {ended.ending} before the probe operations finished: {ended.last_words}",
            hint="run `envlock doctor` without `--prove` to find the variable or flag",
        )
    seen = ended.answers[-1]
    if "failed" in seen and setup is not None:
        raise UsageError(
            f"the lines of `--with`, or the import of TensorFlow, fail: {seen['failed']}"
        )
    if "failed" in seen:
        hint = "name the interpreter of an environment with TensorFlow: `--python .venv/bin/python`"
        raise FactError(f"TensorFlow cannot be imported: {seen['failed']}", hint=hint)
    return seen
