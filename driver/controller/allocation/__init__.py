"""Deciding. Pure: values in, values out; checked by `make arch`."""
