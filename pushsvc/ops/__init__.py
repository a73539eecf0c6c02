"""What operators look at: health, metrics and the doctor."""
