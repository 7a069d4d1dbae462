"""Whose turn it is: queues, their shares, their past, and the order of what waits (D7).

Pure: values in, values out. Checked by `make arch`. `engine.Engine` is what the decider talks to.
"""
