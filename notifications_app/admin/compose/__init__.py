"""The console's pages that write notifications and templates."""
