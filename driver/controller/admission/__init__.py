"""The admission webhook (D20): configuration refused early, device plugins' resources converted.

Which modules are pure stands in the import contracts. Nothing here decides who gets what.
"""
