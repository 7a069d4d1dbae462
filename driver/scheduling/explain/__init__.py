"""Explanations: nearest fit, blockers, shortage, defragmentation."""
