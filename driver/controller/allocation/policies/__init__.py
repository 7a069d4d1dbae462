"""Placement policies, one a file. Pure: values in, values out; checked by `make arch`."""
