"""Define the marks of the product, and the colours of operations in figures."""

from __future__ import annotations

PRODUCT = "HR Assistant"
#: By their addresses: a file would be read and sent again, packed into the message, at every run of a page.
MARK = "/app/static/mark.svg"
WORDMARK = "/app/static/wordmark.svg"

#: Roles of colour in figures, as places in `chartCategoricalColors`: the same operation has the same colour everywhere.
OPERATION_COLOR_INDEX = {"chat": 0, "embedding": 1, "reranking": 2, "translation": 3, "tagging": 4, "ocr": 5}


#: `config=` of every chart: no toolbar, which reads as clutter beside the product's own controls.
PLOTLY_CONFIG = {"displayModeBar": False, "displaylogo": False}
