"""The line that each reason has in docs/reference/reasons.md, by the reason's spelling."""
