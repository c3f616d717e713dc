"""What really runs of a program, in a form that is the same wherever the program is the same."""
