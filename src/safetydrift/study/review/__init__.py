"""Whether the program reads calls as people would: calls are drawn, people judge them, and the two are compared."""
