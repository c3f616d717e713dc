"""Jobs of many ranks, from outside: which job is meant, what has changed since, and the launchers that start them."""
