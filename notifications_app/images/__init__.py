"""Images that staff upload for notifications. Only web processes decode them."""
