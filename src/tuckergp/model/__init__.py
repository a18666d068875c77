"""The model: modes and their designs, cores, the contraction, the log joint and its gradient."""
