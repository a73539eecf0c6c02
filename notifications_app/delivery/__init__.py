"""Transports: values in, outcomes out, no rows and no queue."""
