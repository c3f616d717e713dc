"""The canary: a fixed battery of operations whose exact results tell whether two machines compute the same bits."""
