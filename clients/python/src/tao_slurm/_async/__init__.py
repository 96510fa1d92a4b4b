"""The source of both halves of the package: the build makes `_sync` of it."""
