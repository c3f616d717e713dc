"""Keras: its version, and the defaults that `keras.json` in the home folder changes unnoticed."""

from __future__ import annotations

import os

from envlock.runtime import strict_json
from envlock.runtime.distributions import NO_VERSION, find_distributions
from envlock.runtime.facts import Unavailable
from envlock.runtime.host import Host, read_text
from envlock.runtime.shadows import find_shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Union

    from envlock.runtime.facts import Tree

DEFAULTS: Dict[str, Union[str, float, bool]] = {
    "backend": "tensorflow",
    "epsilon": 1e-07,
    "floatx": "float32",
    "image_data_format": "channels_last",
    "nnx_enabled": False,
}
"""The values that Keras uses if `keras.json` does not set them (keras 2.12 to 3.15,
keras/src/backend/config.py).
"""

WORDS = {
    "backend": ("tensorflow", "jax", "torch", "numpy", "openvino"),
    "floatx": ("bfloat16", "float16", "float32", "float64"),
    "image_data_format": ("channels_first", "channels_last"),
}
"""Every word that Keras accepts; any other text is an error for Keras, and may be a secret."""

DISTRIBUTIONS = ("keras", "tf-keras", "keras-nightly", "tf-keras-nightly")


def collect(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return the Keras versions and the effective configuration; None without Keras."""
    host.cache["keras"] = None
    hidden = find_shadows(host).get("keras")
    if hidden is not None:
        return hidden
    versions = {}
    for name, distribution in find_distributions(host).items():
        if name in DISTRIBUTIONS:
            versions[name] = distribution.version or NO_VERSION
    if not versions:
        return None
    config = host.cache["keras"] = _collect_config(host)
    return {
        "version": versions.get("keras", versions.get("keras-nightly")),
        "legacy_version": versions.get("tf-keras", versions.get("tf-keras-nightly")),
        "config": config,
    }


def find_keras_backend(host: Host) -> Optional[str]:
    """Return the back end of Keras; None without Keras, or if its settings cannot be read."""
    if "keras" not in host.cache:
        collect(host)
    config = host.cache["keras"]
    if config is None or isinstance(config, Unavailable):
        return None
    backend = config["backend"]
    return backend if isinstance(backend, str) else None


def _collect_config(host: Host) -> Union[Tree, Unavailable]:
    """Return the settings that Keras uses: `KERAS_BACKEND`, then keras.json, then its defaults."""
    settings = _read_keras_json(host)
    if isinstance(settings, Unavailable):
        return settings
    config: Tree = {}
    for name, default in DEFAULTS.items():
        value = settings.get(name, default)
        is_valid = type(value) is type(default) and (
            not isinstance(value, str) or value in WORDS[name]
        )
        if not is_valid:
            value = Unavailable(f"keras.json has an unexpected value for {name}", "malformed")
        config[name] = value
    backend = host.environ.get("KERAS_BACKEND")
    if backend in WORDS["backend"]:
        config["backend"] = backend
    elif backend:
        config["backend"] = Unavailable("KERAS_BACKEND names an unknown backend", "malformed")
    return config


def _read_keras_json(host: Host) -> Union[Tree, Unavailable]:
    try:
        text = read_text(os.path.join(_locate_keras_home(host), "keras.json"))
    except OSError as error:
        return Unavailable(f"keras.json cannot be read: {error.strerror}", "permission-denied")
    data = (text or "{}").encode("utf-8", "surrogateescape")
    try:
        settings = strict_json.parse(data)
    except ValueError:
        settings = _parse_as_keras(data)
    if not isinstance(settings, dict):
        return Unavailable("keras.json does not hold a JSON object", "malformed")
    return settings


def _locate_keras_home(host: Host) -> str:
    """Return the folder of keras.json as Keras finds it."""
    folder = host.environ.get("KERAS_HOME")
    if folder is None:  # an empty one is the current folder
        home = host.environ.get("HOME") or os.path.expanduser("~")
        if not os.access(home, os.W_OK):
            home = "/tmp"  # noqa: S108 (so does Keras)
        folder = os.path.join(home, ".keras")
    return os.path.expanduser(folder)


def _parse_as_keras(data: bytes) -> object:
    """Return what Keras reads from a file that is not strict JSON: it accepts duplicate keys and
    NaN.

    Source: keras/src/backend/config.py reads it with `json.load` and ignores a ValueError for an
    empty file.
    """
    # Not at the top: it costs 8 ms, and nearly every file is strict JSON.
    import json

    try:
        settings: object = json.loads(data.decode("utf-8"))
    except ValueError:
        return {}
    except RecursionError:
        return None
    return settings
