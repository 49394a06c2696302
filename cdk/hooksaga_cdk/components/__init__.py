"""Components, one per capability. An exception from a rule is next to the resource that it concerns."""
