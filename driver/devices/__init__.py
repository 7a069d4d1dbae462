"""What a GPU is, and the faces it is published as. Pure: values in, values out."""
