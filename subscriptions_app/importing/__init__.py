"""Subscribers from files: other services' exports, tables of tokens, and exports of pushsvc."""
