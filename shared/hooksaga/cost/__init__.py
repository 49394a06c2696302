"""What a deployment costs a month: prices, measured inputs, and the formulas between them (docs/cost.md)."""
