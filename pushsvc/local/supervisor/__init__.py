"""The parts of `make run`. `pushsvc.local.run` uses them in order."""
