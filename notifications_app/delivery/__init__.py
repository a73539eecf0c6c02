"""Transports take values and return outcomes. They know neither the database nor the queue."""
