"""A proxy between a kubelet and a DRA plugin: counts, records and breaks what passes.

It knows no message classes: what it has to read of a message it reads off the wire (`wire`).
"""
