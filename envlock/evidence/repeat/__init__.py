"""`envlock repeat`: how much the results of one program differ between runs."""
