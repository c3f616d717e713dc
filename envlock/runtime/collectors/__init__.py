"""One file a subject: each turns a `Host` into facts."""
