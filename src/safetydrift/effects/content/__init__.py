"""What texts hold: secrets, identifiers of persons and of money, words that say that something is confidential."""

from safetydrift.effects.content.scan import Finding, Findings, Scanner

__all__ = ["Finding", "Findings", "Scanner"]
