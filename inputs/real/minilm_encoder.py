"""Forward pass of all-MiniLM-L6-v2 in float64, written out so that every tensor around one attention is at hand.

BERT as in Devlin et al. 2019 (post-layer-norm, erf GELU, learned positions); one document at a time, nothing padded.
"""

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file

jax.config.update("jax_enable_x64", True)

LAYERS = 6
HEADS = 12
LAYER_NORM_EPSILON = 1e-12


def load_weights(model_directory):
    """The checkpoint's tensors by name, widened to float64."""
    stored = load_file(model_directory / "model.safetensors")
    return {name: jnp.asarray(tensor, jnp.float64) for name, tensor in stored.items() if np.issubdtype(tensor.dtype, np.floating)}


def dense_attention(q, k, v):
    """softmax(q k^T / sqrt(dim)) v with the full score matrix; q, k, v and the result are [tokens, heads, dim]."""
    scores = jnp.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    return jnp.einsum("hij,jhd->ihd", jax.nn.softmax(scores, axis=-1), v)


def encode(weights, token_ids, probed_layer, context_shift=0.0):
    """Runs the encoder over one document.

    Returns the last hidden state [tokens, hidden] and the (q, k, v) of `probed_layer`, each [tokens, heads, dim].
    `context_shift` [tokens, heads, dim] is added to the attention output of that layer, so that the gradient with respect
    to a shift of zero is the gradient of the attention output.
    """
    hidden = _embed(weights, token_ids)
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        q, k, v = (
            _linear(weights, f"{prefix}attention.self.{part}", hidden).reshape(len(token_ids), HEADS, -1)
            for part in ("query", "key", "value")
        )
        context = dense_attention(q, k, v)
        if layer == probed_layer:
            probed = (q, k, v)
            context = context + context_shift
        attended = _linear(weights, f"{prefix}attention.output.dense", context.reshape(hidden.shape))
        hidden = _layer_norm(weights, f"{prefix}attention.output.LayerNorm", hidden + attended)
        inner = jax.nn.gelu(_linear(weights, f"{prefix}intermediate.dense", hidden), approximate=False)
        hidden = _layer_norm(weights, f"{prefix}output.LayerNorm", hidden + _linear(weights, f"{prefix}output.dense", inner))
    return hidden, probed


def embed_document(hidden):
    """Mean-pooled sentence embedding of unit length [hidden], the model's product."""
    mean = hidden.mean(axis=0)
    return mean / jnp.linalg.norm(mean)


def _embed(weights, token_ids):
    words = weights["embeddings.word_embeddings.weight"][jnp.asarray(token_ids)]
    positions = weights["embeddings.position_embeddings.weight"][: len(token_ids)]
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    return _layer_norm(weights, "embeddings.LayerNorm", words + positions + segment)


def _linear(weights, name, x):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _layer_norm(weights, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
    return centred * scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]
