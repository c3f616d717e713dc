"""Each command as a function: values in, a typed result out. The command line and the Python API are these."""
