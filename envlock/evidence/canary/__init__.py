"""The canary: operations whose exact results show whether two machines compute the same bits."""

ENVIRONMENT = "environment"
"""Stands for a setting that the canary leaves to the environment."""
