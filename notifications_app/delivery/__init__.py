"""Transports take values and return outcomes. They use neither the database nor the queue."""
