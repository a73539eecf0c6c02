"""What the console's lists and pages share."""
