"""The web push sandbox."""
