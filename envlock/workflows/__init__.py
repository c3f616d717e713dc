"""Each command as a function, values in and a typed result out: what the Python API gives."""
