"""The canary: operations whose exact results show whether two machines compute the same bits."""

ENVIRONMENT = "environment"
"""Stands for what the canary does not set itself: as the environment has it."""
