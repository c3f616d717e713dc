"""Determinism: what makes a TensorFlow program give other bits, and what to do about it."""
