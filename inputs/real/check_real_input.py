"""Checks how minilm_layer3.h5 was made, against implementations that share no code with make_real_input.py.

1. The encoder against BERT of the transformers library, same weights, float64: attention weights of the probed layer, last
   hidden state, document embedding.
2. The output and gradients in the file against numpy closed forms (dP = dO V^T, dS = P (dP - rowsum(P dP)), ...), float64.

Usage: python3 check_real_input.py [FILE.h5]     Exit status 1 if a difference is too large.
"""

import pathlib
import sys

import h5py
import jax
import jax.numpy as jnp
import numpy as np
from transformers import FlaxBertModel

from make_real_input import HERE, MODEL_DIRECTORY, PROBED_LAYER, read_documents, round_to_16_bits, tokenize
from minilm_encoder import embed_document, encode, load_weights

ENCODER_TOLERANCE = 1e-12
FILE_TOLERANCE = 1e-7  # one rounding to float32


def relative_error(x, reference):
    return float(np.linalg.norm(np.asarray(x) - np.asarray(reference)) / np.linalg.norm(reference))


def check_encoder(token_ids, stored_q):
    """Largest relative error over all documents, by tensor; and whether the file holds these queries."""
    weights = load_weights(MODEL_DIRECTORY)
    library_model = FlaxBertModel.from_pretrained(MODEL_DIRECTORY, from_pt=True, dtype=jnp.float64)
    library_model.params = jax.tree_util.tree_map(lambda x: x.astype(jnp.float64), library_model.params)
    errors = {"attention weights": 0.0, "last hidden state": 0.0, "embedding": 0.0}
    queries = []
    for ids in token_ids:
        hidden, (q, k, _) = encode(weights, ids, PROBED_LAYER)
        queries.append(q)
        weights_of_layer = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1]), axis=-1)
        library = library_model(jnp.asarray([ids]), output_attentions=True)
        ours_and_theirs = {
            "attention weights": (weights_of_layer, library.attentions[PROBED_LAYER][0]),
            "last hidden state": (hidden, library.last_hidden_state[0]),
            "embedding": (embed_document(hidden), embed_document(library.last_hidden_state[0])),
        }
        for name, (ours, theirs) in ours_and_theirs.items():
            errors[name] = max(errors[name], relative_error(ours, theirs))
    errors["queries in the file"] = relative_error(stored_q, round_to_16_bits(np.concatenate(queries)))
    return errors


def closed_form_attention(q, k, v, dout):
    """out, dq, dk, dv of one document, [tokens, heads, dim] in numpy float64."""
    q, k, v, dout = (x.astype(np.float64).transpose(1, 0, 2) for x in (q, k, v, dout))
    scale = 1.0 / np.sqrt(q.shape[-1])
    scores = scale * q @ k.transpose(0, 2, 1)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    dp = dout @ v.transpose(0, 2, 1)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    results = (p @ v, scale * ds @ k, scale * ds.transpose(0, 2, 1) @ q, p.transpose(0, 2, 1) @ dout)
    return [x.transpose(1, 0, 2) for x in results]


def check_file(tensors):
    """Relative error of what the file says, by tensor; and of the rounding that must be none."""
    bounds = np.cumsum(tensors["doc_lengths"])[:-1]
    inputs = [tensors[name] for name in ("q", "k", "v", "dout")]
    documents = zip(*(np.split(x, bounds) for x in inputs), strict=True)
    out, *gradients = (np.concatenate(x) for x in zip(*(closed_form_attention(*d) for d in documents), strict=True))
    errors = {"out": relative_error(tensors["out"], out)}
    for name, gradient in zip(("dq", "dk", "dv"), gradients, strict=True):
        errors[name] = relative_error(tensors[f"sampled_{name}"], gradient[tensors["sampled_tokens"]])
    errors["rounding of q, k, v, dout"] = max(relative_error(x, round_to_16_bits(x)) for x in inputs)
    return errors


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / f"minilm_layer{PROBED_LAYER}.h5"
    with h5py.File(path) as file:
        tensors = {name: dataset[()] for name, dataset in file.items()}
    token_ids = tokenize(read_documents())
    passed = tensors["doc_lengths"].tolist() == [len(ids) for ids in token_ids]
    print(f"document lengths of the texts: {'equal' if passed else 'DIFFERENT'}")
    checks = ((check_encoder(token_ids, tensors["q"]), ENCODER_TOLERANCE), (check_file(tensors), FILE_TOLERANCE))
    for errors, tolerance in checks:
        for name, error in errors.items():
            print(f"{name:28} relative error {error:.1e}  (at most {tolerance:.0e})")
            passed = passed and error <= tolerance
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
