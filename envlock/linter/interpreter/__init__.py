"""One abstract interpreter of Python: the program is run with unknown data, and what is left to chance is followed."""
