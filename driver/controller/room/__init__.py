"""Making room: what is reserved, who goes for whom, and what stays idle (D7)."""
