"""The runtime half: what runs inside the user's process, at script start.

Standard library only, Python 3.8 or newer, no side effects. Nothing in this folder imports from
outside it (`tests/test_architecture.py` checks that), so the folder can be copied into an image and
works there on its own.
"""
