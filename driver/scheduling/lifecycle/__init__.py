"""The next action for a pod or claim, decided from objects and remembered times."""
