"""The doctor: whether an installation of the guard refuses what it should, found out by making it refuse a probe.

Nothing of the user's is changed: his settings and files are read, and every probe is judged on a policy, a state and
a log in a folder that is gone afterwards.
"""
