"""The minimal driver with flaws of choice: what the suite is to find."""
