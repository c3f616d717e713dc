"""What determinism rests on: programs that are run, and the results that are compared bit for bit."""
