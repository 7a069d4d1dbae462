"""Deciding for a cluster that is not watched: a dump, a trace. Pure: values in, values out."""
