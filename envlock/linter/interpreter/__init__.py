"""One abstract interpreter of Python: the program is run with unknown data, and what is left to
chance is followed.

It is one object. Each file adds a layer to it, a class that inherits from the one before: `Base`
(run_state), `Chances`, `Orders`, `Containers`, `Computations`, `Libraries`, `Flags`, `Trainings`,
`Methods`, `Operations`, `RepeatedCalls`, `Environments`, `GraphFunctions`, `Functions`,
`Operators`, `Expressions`, `Imports`, `Branches`, `Statements` and `Programs`, which is what runs.
A layer declares what it needs of a later one, and raises NotImplementedError there.

`ENV303/good_walk.py` in a comment is a file of tests/linter/examples that needs what the comment
explains: without it, the example gives other findings.
"""
