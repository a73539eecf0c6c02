"""What pushsvc costs, in figures. Benches assert only that everything was sent and counted, because
machines differ."""
