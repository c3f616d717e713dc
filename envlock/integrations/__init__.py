"""envlock in other tools: one module a host, loaded by that host only, over the public names."""
