"""Rerank with a cross-encoder in a file: `reranker` loads the model."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="cross_encoder",
    title="Cross-encoder",
    packages=("onnxruntime", "tokenizers"),
    cross_encoder=f"{__name__}.reranker:LocalCrossEncoder",
)
