"""The doctor: what is unsound or not deterministic about an environment, by rules per TensorFlow version."""
