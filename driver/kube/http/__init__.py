"""One HTTP exchange with the API server: credentials, transport, decoding, errors."""
