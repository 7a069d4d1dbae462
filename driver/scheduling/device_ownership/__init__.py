"""Ownership of other drivers' devices: which DeviceTaintRules make the controller their allocator.

A driver that knows nothing of Ration cannot publish the taint that names the allocator (D2), so the
controller adds it from outside.
"""
