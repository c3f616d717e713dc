"""Determinism: rules per TensorFlow version, the doctor that asks them, and the proof by behaviour."""
