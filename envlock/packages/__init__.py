"""Which exact files are installed: hashes of the wheels they came from, deep verification, and the wheelhouse."""
