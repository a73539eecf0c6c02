"""The way in: validates, checks and accepts sends, drafts and templates."""
