"""`python -m envlock`."""

from envlock.cli import main

main()
