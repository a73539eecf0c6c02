"""Rules of segments: what they may be, as SQL, in words. Pure; knows no models.

A rule is JSON as docs/segments.md describes it, and stays JSON: `rule_faults` judges it, and
whatever reads one afterwards relies on that.
"""
