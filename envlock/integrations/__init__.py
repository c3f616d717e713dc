"""envlock in other tools: one module for each host, which loads it; they use only the public names."""
