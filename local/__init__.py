"""What runs on one machine: `make run`, its supervisor, the embedded servers."""
