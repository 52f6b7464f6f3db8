"""Where the state of guarded runs is kept: in memory, in a SQLite file, in Redis or Valkey.

A store gives back what it was given last, together with a version, and takes something new only if nobody else has
written in between. That is all that a guard asks of it; `protocol.Store` says it in types.
"""
