"""What a notification says: its values, placeholders and tracking tokens. Pure."""
