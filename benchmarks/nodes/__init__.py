"""A day of jobs on nodes that come when they are asked for and go when they are idle."""
