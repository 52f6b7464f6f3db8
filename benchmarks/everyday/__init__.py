"""The benchmark of everyday guarding: what a guard stops, and what it interrupts (README.md beside this file)."""
