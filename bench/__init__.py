"""One command for each figure. Benches print and assert nothing, because machines differ."""
