"""Commands that look: where their documents come from, and the options that they share."""
