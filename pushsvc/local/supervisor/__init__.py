"""The parts of `make run`; `pushsvc.local.run` puts them in order."""
