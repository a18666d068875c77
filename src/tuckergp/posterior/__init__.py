"""What a run leaves, and what can be read from it: draws, predictions, moments, diagnostics, export."""
