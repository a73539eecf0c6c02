"""How staff sign in to the console: password, second step, lock-out, sessions."""
