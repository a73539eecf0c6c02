"""Web push: RFC 8030, 8291 and 8292."""
