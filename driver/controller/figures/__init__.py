"""What the controller's metrics say of the fleet, of queues and of what waits. Pure."""
