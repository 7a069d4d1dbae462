"""What must be green before anybody calls this production, each with the command that shows it."""
