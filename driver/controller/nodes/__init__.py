"""Labels and conditions of nodes, and pods that the webhook did not convert."""
