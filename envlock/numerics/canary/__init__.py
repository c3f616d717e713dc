"""The canary: a fixed battery of operations whose exact results tell whether two machines compute the same bits."""

ENVIRONMENT = "environment"
"""Stands for what the canary does not set itself: as the environment has it."""
