"""Tables, ids, times, grids and splits: everything between a file and arrays of numbers."""
