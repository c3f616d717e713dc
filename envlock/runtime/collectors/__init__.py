"""The collectors: one file a subject, each with `collect(host)`, which gives facts and never raises for one of them."""
