"""The rules, a file a subject; each is a function from a module and its program to hits."""
