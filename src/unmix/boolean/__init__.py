"""Boolean factors: X ≈ Z ⊗ U, where a cell is 1 if any part that its row has holds it."""
