"""The parts of `make run`. `local.run` uses them in order."""
