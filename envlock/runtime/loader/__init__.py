"""The dynamic loader, replayed on files: which file a `dlopen` would load, and why."""
