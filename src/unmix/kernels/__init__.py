"""Compiled inner loops: Numba, serial, free of the GIL, imported by the method that uses them. Each has a NumPy twin in the tests."""
