"""gpucost: which configuration does the whole corpus, well enough, in time, for least money."""

__version__ = "0.1.0"
