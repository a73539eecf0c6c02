"""Measures what pushsvc costs. Benches assert only that everything was sent and counted, because
machines differ."""
