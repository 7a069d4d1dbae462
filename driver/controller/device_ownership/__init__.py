"""DeviceTaintRules that make the controller the allocator of other drivers' devices."""
