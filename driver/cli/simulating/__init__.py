"""What `ration simulate` asks of the engine, and how its answer is told."""
