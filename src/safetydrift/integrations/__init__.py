"""Adapters: one module per agent framework, each of which puts a guard in the framework's own place for one."""
