"""What a query of SQL says about the order of its rows."""

from __future__ import annotations

import re

SELECTS = re.compile(r"\s*(select|with)\b", re.IGNORECASE)
ORDERS = re.compile(r"\border\s+by\b(?!\s*(random|rand|newid|rand_uniform)\s*\()", re.IGNORECASE)
DRAWS = re.compile(r"\b(random|rand|newid)\s*\(|\btablesample\b", re.IGNORECASE)
# An aggregate of all rows is one row, unless it is one of each group.
ONE_ROW = re.compile(
    r"\s*select\s+(count|max|min|sum|avg|total|last_insert_rowid|version|exists)\s*\(",
    re.IGNORECASE,
)


def is_unordered(query: str) -> bool:
    """Return whether the rows of a query come in an undefined order, or by chance."""
    if not SELECTS.match(query):
        return False
    if DRAWS.search(query):
        return True
    if ONE_ROW.match(query) and "group by" not in query.lower():
        return False
    return ORDERS.search(query) is None
