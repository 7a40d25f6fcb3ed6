"""Readers of input, the row formats of models, and atomic writing of files."""
