"""From a lock to an image: what goes into it, how its Dockerfile reads, the build, and verification inside."""
