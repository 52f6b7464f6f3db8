"""What a judge may spend: a number of requests and of tokens for as long as the process lives."""

from __future__ import annotations

from threading import Lock

from safetydrift.errors import JudgeBudgetError


class Budget:
    """A limit that several judges, threads and tasks may share.

    Parameters
    ----------
    max_requests
        Requests that may be sent, retries included.
    max_tokens
        Tokens that may be used, in and out.

    Attributes
    ----------
    requests, tokens
        What was spent. Tokens of a request under way, and of one whose end is not known, count as estimated.

    Notes
    -----
    A request is only begun if its estimate still fits, so the limit holds as far as the estimates do.
    """

    __slots__ = ("_lock", "max_requests", "max_tokens", "requests", "tokens")

    def __init__(self, max_requests: int, max_tokens: int) -> None:
        self.max_requests, self.max_tokens = max_requests, max_tokens
        self.requests = self.tokens = 0
        self._lock = Lock()

    def reserve(self, tokens: int) -> None:
        """Account for a request before it is sent.

        Raises
        ------
        JudgeBudgetError
            If it would go beyond the limit; nothing is accounted for then.
        """
        with self._lock:
            if self.requests + 1 > self.max_requests:
                raise JudgeBudgetError(
                    f"the {self.max_requests} requests a judge may send are spent; raise max_requests to go on"
                )
            if self.tokens + tokens > self.max_tokens:
                raise JudgeBudgetError(
                    f"a further request may go beyond the {self.max_tokens} tokens a judge may use; "
                    "raise max_total_tokens to go on"
                )
            self.requests += 1
            self.tokens += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace the estimate of a request by what it used."""
        with self._lock:
            self.tokens += used - reserved

    def __repr__(self) -> str:
        return (
            f"<Budget: {self.requests} of {self.max_requests} requests, "
            f"{self.tokens} of {self.max_tokens} tokens spent>"
        )
