"""The cases. Run them by `python -m tests.blackbox`; pytest alone skips them."""
