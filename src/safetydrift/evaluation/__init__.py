"""How we know: replay, predictions, agreement, findings, and the report that shows them."""
