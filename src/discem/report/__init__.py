"""What the library shows of its work: pictures, and experiments with their tables."""
