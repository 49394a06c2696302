"""The steps of the proof, in order. Each takes the proof and the result that it fills in."""
