"""The version of this package, which is that of the service."""

VERSION = "0.1.0"
