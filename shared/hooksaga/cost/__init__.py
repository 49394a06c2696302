"""Estimate of a deployment's monthly cost: prices, measurements and formulas (docs/cost.md)."""
