"""`envlock diverge record` and `envlock diverge compare`: one run in each of two environments."""
