"""Lock, build and verify TensorFlow environments."""

__version__ = "0.1.0"
