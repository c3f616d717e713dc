"""envlock in the tools that are there already: one module a host, loaded by that host only, over the public names."""
