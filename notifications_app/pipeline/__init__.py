"""From a due notification to recorded outcomes: plan, claim, send, record, expire."""
