"""From a lockfile to an image: its plan, its Dockerfile, the build, and verification inside."""
