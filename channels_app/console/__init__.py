"""Access to the console, what its lists and pages share, and pages that belong to no other part."""
