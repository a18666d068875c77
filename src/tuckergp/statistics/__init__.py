"""What the data say about one unknown given the others: statistics of rows and of the core, the core's conditional."""
