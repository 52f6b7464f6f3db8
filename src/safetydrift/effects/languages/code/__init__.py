"""What the readers of programming languages share: expressions, their values, and the judging of calls."""
