"""Keras: its version, and the defaults that `keras.json` in the home folder sets unseen."""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.distributions import NO_VERSION, installed, shadow
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import read_text
from envlock.runtime.shadows import shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

DEFAULTS: Dict[str, Any] = {
    "backend": "tensorflow",
    "epsilon": 1e-07,
    "floatx": "float32",
    "image_data_format": "channels_last",
    "nnx_enabled": False,
}
"""What Keras takes where `keras.json` is silent (keras 2.12 to 3.15, keras/src/backend/config.py)."""

WORDS = {
    "backend": ("tensorflow", "jax", "torch", "numpy", "openvino"),
    "floatx": ("bfloat16", "float16", "float32", "float64"),
    "image_data_format": ("channels_first", "channels_last"),
}
"""Every word that Keras accepts; anything else is its error, and may be anybody's secret."""

FACTS = ("jax", "torch")
"""The back ends beside TensorFlow of which a lock has facts of their own, where Keras computes with them."""

DISTRIBUTIONS = ("keras", "tf-keras", "keras-nightly", "tf-keras-nightly")


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return the Keras versions and the effective configuration; None without Keras."""
    hidden = shadow(host, "keras") or shadows(host).get("keras")
    if hidden is not None:
        return hidden
    versions = {
        name: found.version or NO_VERSION
        for name, found in installed(host).items()
        if name in DISTRIBUTIONS
    }
    if not versions:
        return None
    config = _config(host)
    backend = config.get("backend") if isinstance(config, dict) else None
    return {
        "version": versions.get("keras", versions.get("keras-nightly")),
        "legacy_version": versions.get("tf-keras", versions.get("tf-keras-nightly")),
        "config": config,
        **({backend: _facts_of(host, backend)} if backend in FACTS else {}),
    }


def _facts_of(host: Host, backend: str) -> Union[Tree, Unavailable]:
    from envlock.runtime.collectors.backends import facts_of  # read only where it is asked for

    return facts_of(host, backend)


def keras_backend(host: Host) -> Optional[str]:
    """Return the library with which Keras computes; None where there is no Keras, or its settings cannot be told."""
    found = collect(host)
    config = found.get("config") if isinstance(found, dict) else None
    backend = config.get("backend") if isinstance(config, dict) else None
    return backend if isinstance(backend, str) else None


def _config(host: Host) -> Union[Tree, Unavailable]:
    """Return what Keras would take: `KERAS_BACKEND`, then keras.json, then its defaults."""
    written = _keras_json(host)
    if isinstance(written, Unavailable):
        return written
    config: Tree = {}
    for name, default in DEFAULTS.items():
        value = written.get(name, default)
        fits = type(value) is type(default) and (not isinstance(value, str) or value in WORDS[name])
        config[name] = (
            value
            if fits
            else Unavailable(f"keras.json has an unexpected value for {name}", "malformed")
        )
    backend = host.environ.get("KERAS_BACKEND", "")
    if backend:
        known = backend in WORDS["backend"]
        config["backend"] = (
            backend if known else Unavailable("KERAS_BACKEND names an unknown backend", "malformed")
        )
    return config


def _keras_json(host: Host) -> Union[Dict[str, Any], Unavailable]:
    folder = host.environ.get("KERAS_HOME")
    if not folder:
        home = host.environ.get("HOME") or os.path.expanduser("~")
        folder = os.path.join(home if os.access(home, os.W_OK) else "/tmp", ".keras")  # noqa: S108 (so does Keras)
    try:
        text = read_text(os.path.join(os.path.expanduser(folder), "keras.json"))
    except OSError as error:
        return Unavailable(f"keras.json cannot be read: {error.strerror}", "permission-denied")
    data = (text or "{}").encode("utf-8", "surrogateescape")
    try:
        written = strict_json.parse(data)
    except ValueError:
        written = _as_keras_reads(data)
    if not isinstance(written, dict):
        return Unavailable("keras.json does not hold a JSON object", "malformed")
    return written


def _as_keras_reads(data: bytes) -> Any:
    """Return what Keras takes of a file that is not strict JSON: it minds neither a key twice nor NaN.

    Source: keras/src/backend/config.py reads it with `json.load` and takes a ValueError for an empty file.
    """
    import json

    try:
        return json.loads(data.decode("utf-8"))
    except ValueError:
        return {}
    except RecursionError:
        return None
