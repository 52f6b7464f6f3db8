"""Human review of effects: a sample to judge, the sheet it is judged on, and how far the judgements agree."""
