"""Running algorithms: steps, chains, processes, time limits, checkpoints, progress."""
