"""The laboratory: what runs experiments, and the page that shows what they found.

It is no part of the installed package. ``discem reproduce`` finds it in a clone; scripts beside
this folder import it as ``lab``.
"""
