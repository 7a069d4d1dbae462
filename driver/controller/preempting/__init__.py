"""Which running workloads go so that a waiting one can be placed. Pure: values in, values out."""
