"""What all views share: input, errors, limits, headers."""
