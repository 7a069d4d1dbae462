"""The scheduling library under the controller and the command line. Pure: values in, values out."""
