"""How the console writes dates and numbers in each language, and its texts (.ci/texts.py)."""
