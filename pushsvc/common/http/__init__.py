"""What every view shares: input, errors, limits, headers."""
