"""What the data say while the rest stands still: statistics of rows and of the core, and the core's conditional."""
