"""`nvidia-smi` in the machine: the program in a container sends its arguments and prints the reply.

The words are those the real program is seen to print (captures in public repositories, the MIG
User Guide); where none was found, docs/explanation/hardware-evidence.md says so.
"""
