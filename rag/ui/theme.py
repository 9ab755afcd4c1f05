"""Define the product's marks and the look of Plotly figures; colours are in `.streamlit/config.toml`."""

from __future__ import annotations

from typing import Any

PRODUCT = "HR Assistant"
#: By their addresses: a file would be read and sent again, packed into the message, at every run of a page.
MARK = "/app/static/mark.svg"
WORDMARK = "/app/static/wordmark.svg"

#: Roles of colour in figures, as places in `chartCategoricalColors`: the same operation has the same colour everywhere.
OPERATION_COLOR_INDEX = {"chat": 0, "embedding": 1, "reranking": 2, "translation": 3, "tagging": 4, "ocr": 5}


def quiet_figure(figure: Any, *, height: int = 280, legend: bool = True, money_axis: bool = False) -> Any:
    """Give a Plotly figure the product's look: no frame, few lines, legend on top. Changes and returns the figure."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 32 if legend else 8, "b": 8},
        showlegend=legend,
        # On a phone its entries are in one column: all of them are shown, never a part with a bar to scroll.
        legend={
            "orientation": "h",
            "yanchor": "bottom",
            "y": 1.02,
            "x": 0,
            "title": {"text": ""},
            "font": {"size": 11},
            "maxheight": 0.9,
        },
        hovermode="x unified",
        bargap=0.25,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    figure.update_xaxes(showgrid=False, zeroline=False, title_text="", automargin=True)
    figure.update_yaxes(
        zeroline=False, automargin=True, rangemode="tozero", tickprefix="$" if money_axis else "", exponentformat="none"
    )
    return figure


#: `config=` of every chart: no toolbar, which reads as clutter beside the product's own controls.
PLOTLY_CONFIG = {"displayModeBar": False, "displaylogo": False}
