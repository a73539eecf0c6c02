"""The parts of `make run`; `pushsvc.run` puts them in order."""
