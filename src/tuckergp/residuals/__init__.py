"""What the features of a mode do not explain, E in psi = Phi B + E: one kind a file."""
