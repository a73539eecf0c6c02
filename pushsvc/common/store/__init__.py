"""What every app does with PostgreSQL and Redis."""
