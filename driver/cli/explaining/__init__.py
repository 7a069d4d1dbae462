"""What `ration explain` says, as text."""
