"""The controller: decides which GPU, for whom and when."""
