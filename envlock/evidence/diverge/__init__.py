"""Divergence: traces of what every operation computed, and the first that computed another result."""
