"""The published study: its scenarios, collected runs, analyses, judge and review. Nothing of a guard needs it."""
