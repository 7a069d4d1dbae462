"""NodePrepareResources and NodeUnprepareResources: resolve, plan, record, carry out."""
