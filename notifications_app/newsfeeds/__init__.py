"""Checks newsfeeds: fetches RSS and Atom documents, reads their entries, and finds the new ones."""
