"""From a lock to an image: its plan, its Dockerfile, the build, and verification inside."""
