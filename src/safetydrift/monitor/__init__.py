"""From a chain to a verdict: fitting, the table of verdicts, and the policy that reads it."""
