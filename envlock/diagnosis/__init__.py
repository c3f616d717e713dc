"""The doctor: rules, by version, that find defects and sources of nondeterminism in an environment."""
