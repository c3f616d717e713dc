"""All HTTP of envlock: limited in time, in bytes and in attempts."""
