"""One lock, many ranks: the statement of a rank, the reduction of all of them, and the places where ranks meet."""
