"""What every page of the console shares."""
