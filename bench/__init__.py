"""One command for each figure. Benches print; they assert nothing, because machines differ."""
