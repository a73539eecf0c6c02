"""The public pages: guides, reference and demo."""
