"""What must hold under load: many claims of a node, a large fleet, and a plugin that rests."""
