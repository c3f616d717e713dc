"""The doctor: unsound or not deterministic settings of an environment, by rules per version."""
