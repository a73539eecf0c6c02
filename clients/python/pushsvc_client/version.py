"""The version of this package. It is not that of the service."""

VERSION = "1.0.0"
