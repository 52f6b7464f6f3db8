"""The vocabulary of safety: dimensions, effects, states, and the rules that give them a risk."""
