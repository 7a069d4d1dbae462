"""What claims may have of one GPU together: rules of Prepare that the allocator keeps too. Pure."""
