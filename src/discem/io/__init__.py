"""Readers and row views, what a model sees of its input; and files that are written whole."""
