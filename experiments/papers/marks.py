"""How the papers' figures stand beside ours: in grey; and legends."""

from __future__ import annotations

from contact_id_controller.report.style import GREY

PRINTED = {"color": GREY, "linestyle": "none", "marker": "D", "markersize": 5.5, "zorder": 4}
"""Of points that the paper prints."""

PRINTED_LINE = {
    "color": GREY,
    "linestyle": "--",
    "linewidth": 1.2,
    "marker": "D",
    "markersize": 4.5,
}


def legend_of_all(axis) -> None:
    """One legend, of what is drawn in ``axis``, to the right of the whole figure."""
    axis.figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper")


def legend_beside(axis) -> None:
    """A legend to the right of the axes, if there is anything to explain."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
