"""JAX and PyTorch, wherever they are installed: a program may compute with them beside TensorFlow, and
Keras may do so instead.

Nothing is imported.
"""

from __future__ import annotations

from envlock.runtime.collectors.keras_settings import find_keras_backend
from envlock.runtime.distributions import find_distributions
from envlock.runtime.facts import Unavailable
from envlock.runtime.shadows import find_shadows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Tuple, Union

    from envlock.runtime.facts import Tree
    from envlock.runtime.host import Host

NEEDED: Dict[str, Dict[str, Tuple[str, ...]]] = {
    "jax": {"jax": ("jax", "jaxlib"), "numpy": ("jax", "jaxlib", "scipy")},
    "torch": {"torch": ("torch",)},
}
"""By library, the back ends of Keras that compute with it, and the distributions that each cannot do
without. Keras' numpy takes its neural network operations from JAX (keras/src/backend/numpy/nn.py).
"""


def collect_jax(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return versions and settings of JAX; None without it."""
    return _collect(host, "jax")


def collect_torch(host: Host) -> Optional[Union[Tree, Unavailable]]:
    """Return version, build and settings of PyTorch; None without it."""
    return _collect(host, "torch")


def _collect(host: Host, library: str) -> Optional[Union[Tree, Unavailable]]:
    distributions = find_distributions(host)
    backend = find_keras_backend(host)
    for name in NEEDED[library].get(backend or "", ()):
        if name not in distributions or not distributions[name].version:
            return Unavailable(
                f"Keras is to compute with {backend}, but no {name} is installed", "no-backend"
            )
    if library not in distributions:
        return None
    hidden = find_shadows(host).get(library)
    if hidden is not None:
        return hidden
    # Not at the top: most environments have neither library.
    from envlock.runtime.collectors.framework_settings import collect_library

    return collect_library(host, library)
