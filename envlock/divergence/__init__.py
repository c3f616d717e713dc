"""Divergence: traces of what every operation computed, and the first operation that computed something else."""
