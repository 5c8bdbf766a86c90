"""Compiled inner loops: Numba, serial, free of the GIL, imported by the method that uses them, with NumPy twins."""
