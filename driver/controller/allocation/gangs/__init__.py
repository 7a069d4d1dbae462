"""Places for gangs: pods that run together or not at all. Pure: values in, values out (D4, D7)."""
