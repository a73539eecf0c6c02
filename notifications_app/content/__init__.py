"""The content of a notification: its values, placeholders and tracking tokens. Pure."""
