"""Controllers that evict: preemption, reservations, faulty and idle GPUs, misplaced pods."""
