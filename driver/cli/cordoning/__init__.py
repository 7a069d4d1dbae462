"""`ration cordon`, `uncordon` and `drain`: what is written, who holds a GPU, and how they leave."""
