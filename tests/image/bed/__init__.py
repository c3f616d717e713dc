"""The test bed: container engines, a registry and base images, made of Debian's packages without installing any.

Read tests/image/README.md for how to use it.
"""
