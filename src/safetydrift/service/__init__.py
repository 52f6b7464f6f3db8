"""A team's guard: one decision point for many agents, with live runs, approvals and history in a browser.

`safetydrift.service.app` makes the application, `safetydrift serve` runs it. An agent reaches it with
`safetydrift.guard.remote`.
"""
