"""Components: one capability each, whatever resources that takes. Exceptions from rules stand where they apply."""
