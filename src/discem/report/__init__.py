"""What the library shows of its work: pictures, an evaluation, a demonstration."""
