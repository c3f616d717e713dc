"""The dynamic loader, read and replayed on files: which file a `dlopen` would take, and why."""
