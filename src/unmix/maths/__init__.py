"""Equations that several families share and none owns: arrays in, arrays out."""
