"""Evaluation of models: metrics, baselines, comparisons on held-out data, and tuning of settings."""
