"""GPUs, and the faces they are published as. Pure: values in, values out."""
