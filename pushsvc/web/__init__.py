"""The web process: reads requests, limits threads and sockets, sends responses."""
