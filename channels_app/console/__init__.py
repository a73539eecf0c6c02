"""Who may see what in the console, what its lists and pages share, and pages of no single part."""
