"""Rendering of pages: templates, charts, lists, text. Pure but for the templates."""
