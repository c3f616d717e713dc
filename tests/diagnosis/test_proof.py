"""What observations mean, and what is not as it was asked for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from envlock.diagnosis import tensorflow_state
from envlock.lock.fact_models import Facts

SEEN: tensorflow_state.Observations = {
    "tensorflow": "2.21.0",
    "reasons": {},
    "threads": [2, 2],
    "clock": "raised",
    "scatter": 1,
    "crop": 1,
    "operations": ["_MklMatMul", "_MklSoftmax"],
    "clusters": False,
    "compiled": False,
    "keras_compiled": False,
    "tensor_float_32": None,
}
CALLS = "in 8 calls"
ONE = f"scatter_add gave one result {CALLS}, crop_and_resize gave one result {CALLS}"


def state(what: str, **seen: Any) -> tuple[str, str]:
    """Return state and evidence of one subject, with observations changed."""
    (shown,) = [
        each
        for each in tensorflow_state.read_states(cast(tensorflow_state.Observations, {**SEEN, **seen}))
        if each.what == what
    ]
    return shown.state, shown.evidence


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ({}, ("on", f"tf.timestamp was rejected; {ONE}")),
        (
            {"scatter": 8},
            (
                "partly",
                f"tf.timestamp was rejected, but scatter_add gave 8 results {CALLS}, "
                f"crop_and_resize gave one result {CALLS}",
            ),
        ),
        ({"clock": "ran"}, ("off", f"tf.timestamp ran, which op determinism rejects; {ONE}")),
        (
            {"clock": "ran", "tensorflow": "2.6.5", "crop": 4, "scatter": 1},
            ("off", f"scatter_add gave one result {CALLS}, crop_and_resize gave 4 results {CALLS}"),
        ),
        (
            {"clock": "ran", "tensorflow": "2.4.4", "crop": 4},
            (
                "unknown",
                f"TensorFlow 2.4.4 has no operation that shows it on a CPU; scatter_add gave one result {CALLS}, "
                f"crop_and_resize gave 4 results {CALLS}",
            ),
        ),
        ({"clock": None, "reasons": {"clock": "NotFoundError: gone"}}, ("unknown", "NotFoundError: gone")),
    ],
)
def test_op_determinism(seen: dict[str, Any], expected: tuple[str, str]) -> None:
    assert state("op determinism", **seen) == expected


def test_the_others() -> None:
    ran = "a product, a convolution and a softmax ran as"
    assert state("oneDNN") == ("on", f"{ran} _MklMatMul, _MklSoftmax")
    assert state("oneDNN", operations=["MatMul"]) == ("off", f"{ran} MatMul")
    assert state("oneDNN", operations=None) == ("unknown", "not observed")
    assert state("TF32") == ("unknown", "no GPU is visible")
    assert state("TF32", tensor_float_32=True)[0] == "on"
    assert state("TF32", tensor_float_32=False) == (
        "off",
        "1 + 2**-12 kept its 23 bits in a matrix product on the GPU",
    )
    assert state("XLA")[0] == "off"
    assert state("XLA", compiled=True, clusters=True) == (
        "on",
        "a plain tf.function with strings did not compile; a part of a plain tf.function ran as an XLA cluster",
    )
    assert state("XLA", keras_compiled=None, reasons={"keras_compiled": "it broke"}) == ("unknown", "it broke")
    assert state("intra-op threads") == ("2", "2 threads ran one large operation")
    assert state("inter-op threads", threads=[2, 1]) == ("1", "1 thread ran 64 independent operations")
    assert state("inter-op threads", clusters=True)[0] == "unknown"


def test_what_is_asked_for() -> None:
    assert tensorflow_state.list_wanted_states(None) == {"op determinism": "on"}
    environ = {"TF_DETERMINISTIC_OPS": None, "TF_ENABLE_ONEDNN_OPTS": "0", "TF_XLA_FLAGS": None}
    environ["NVIDIA_TF32_OVERRIDE"] = "0"
    threads = {"intra_op_threads": 4, "inter_op_threads": 8}
    assert tensorflow_state.list_wanted_states(Facts.model_validate({"environ": environ, "cpu": threads})) == {
        "op determinism": "on",
        "oneDNN": "off",
        "TF32": "off",
        "XLA": "off",
        "intra-op threads": "4",
        "inter-op threads": "8",
    }
    assert tensorflow_state.list_wanted_states(Facts.model_validate({"environ": {"TF_DETERMINISTIC_OPS": "0"}})) == {
        "op determinism": "off"
    }


def test_what_is_not_as_asked_is_a_finding() -> None:
    shown = tensorflow_state.read_states({**SEEN, "clock": "ran", "threads": [4, 2]})
    asked = {"op determinism": "on", "intra-op threads": "2", "inter-op threads": "2", "TF32": "off", "oneDNN": "on"}
    found = tensorflow_state.find_deviations(shown, asked, "2.21.0")
    assert [(each.rule, each.severity, each.message, each.fix) for each in found] == [
        (
            "proof",
            "error",
            f"op determinism: off, wanted: on (tf.timestamp ran, which op determinism rejects; {ONE})",
            "call envlock.activate() on line 1, which does: tf.config.experimental.enable_op_determinism()",
        ),
        (
            "proof",
            "error",
            "intra-op threads: 4, wanted: 2 (4 threads ran one large operation)",
            "export TF_NUM_INTRAOP_THREADS=2, or tf.config.threading.set_intra_op_parallelism_threads(2); "
            "`envlock run` and `envlock.activate()` set it as locked",
        ),
    ]


@pytest.mark.parametrize(
    ("version", "fix"),
    [
        ("2.4.0", "export TF_DETERMINISTIC_OPS=1"),
        ("2.7.0", "export TF_CUDNN_USE_FRONTEND=1 and export TF_DETERMINISTIC_OPS=1"),
        ("2.15.0", "tf.config.experimental.enable_op_determinism()"),
    ],
)
def test_the_fix_is_the_recipe_of_the_version(version: str, fix: str) -> None:
    shown = [tensorflow_state.ObservedState("op determinism", "off", "e")]
    (found,) = tensorflow_state.find_deviations(shown, {"op determinism": "on"}, version)
    assert found.fix == f"call envlock.activate() on line 1, which does: {fix}"


def test_what_cannot_be_observed_is_a_warning() -> None:
    shown = [
        tensorflow_state.ObservedState("op determinism", "unknown", "e"),
        tensorflow_state.ObservedState("TF32", "unknown", "no GPU is visible"),
    ]
    found = tensorflow_state.find_deviations(shown, {"op determinism": "on", "TF32": "off"}, "2.4.0")
    assert [(each.where.fact, each.severity) for each in found] == [("op determinism", "warning")]
