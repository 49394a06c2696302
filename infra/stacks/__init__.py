"""Stacks: each composes components and defines no resource of its own."""
