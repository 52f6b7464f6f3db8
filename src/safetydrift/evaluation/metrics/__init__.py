"""Metrics of predictions, each a function of flat arrays."""
