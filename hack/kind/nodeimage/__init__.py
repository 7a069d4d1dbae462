"""kind's node image, built by kind itself from Debian's packages and Go modules: without a hub."""
