"""Stacks. Each composes components and defines no resources itself."""
