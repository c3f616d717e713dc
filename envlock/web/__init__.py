"""The only HTTP of envlock: bounded in time, in bytes and in attempts."""
