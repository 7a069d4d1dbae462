"""Nodes on demand, acted on: asked for, waited for, kept for what they came for, given up."""
