"""The colours and type of every drawing: Okabe and Ito's, which colour-blind readers can tell apart."""

from __future__ import annotations

INK, MUTED, GRID, PAPER = "#1c2026", "#5a6270", "#d9dde3", "#ffffff"
BLUE, GREEN, ORANGE, VERMILLION, PURPLE, SKY = (
    "#0072b2",
    "#009e73",
    "#e69f00",
    "#d55e00",
    "#cc79a7",
    "#56b4e9",
)

BLACK = "#15181c"
"""Dark on light and on dark pages alike; no variable."""

CSS_COLOURS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
    BLUE: "var(--blue)",
    GREEN: "var(--green)",
    ORANGE: "var(--orange)",
    VERMILLION: "var(--vermillion)",
    PURPLE: "var(--purple)",
    SKY: "var(--sky)",
}
"""What each colour becomes in an inline drawing, so that one drawing serves light and dark pages."""

SERIES = ((BLUE, "o"), (GREEN, "s"), (ORANGE, "^"), (VERMILLION, "D"), (PURPLE, "v"), (SKY, "P"))
"""Colour and marker of each curve, in the order of the states."""

STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "safetydrift",
}
