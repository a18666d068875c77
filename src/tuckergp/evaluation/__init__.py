"""How good a model is: metrics, baselines, comparisons on held-out data, the choice of settings."""
