"""Recognise the text on scanned pages: `worker` is the process with RapidOCR."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="recognition",
    title="RapidOCR",
    packages=("rapidocr", "onnxruntime"),
    workers={"recognition": f"{__name__}.worker"},
)
