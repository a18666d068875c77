"""The result of learning and what can be computed from it: draws, predictions, moments, diagnostics, export."""
