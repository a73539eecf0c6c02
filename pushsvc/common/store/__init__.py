"""Access to PostgreSQL and Redis for all apps."""
