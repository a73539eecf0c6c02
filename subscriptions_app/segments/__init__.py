"""Rules of segments: their validation, their SQL, their description. Pure; uses no models.

A rule is JSON as docs/segments.md describes it, and stays JSON. `rule_errors` validates it, and all
other code relies on this.
"""
