"""CDI specs: a template, a typed model that checks it, a store that writes it."""
