"""Exports the tiny language models of this folder: one layer of attention with random weights, in the forms that
exporters give the step of a model.

usage: export.py OUTDIR [NAME ...]          (needs torch and executorch; writes NAME.pte and reference.safetensors)"""
import sys

import torch
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  llama::update_cache, llama::custom_sdpa
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from safetensors.torch import save_file
from torch.export import Dim, export

VOCAB, WIDTH, HEADS, CONTEXT = 24, 8, 2, 16


class Model(torch.nn.Module):
    """Embedding, one causal attention, a head. `cache`: keys and values live in buffers of the module; if "custom", the
    operators of the reference's own library work on them."""

    def __init__(self, cache, rows="all", dtype=torch.float32, embeddings=False, causal=True):
        super().__init__()
        torch.manual_seed(7)
        self.cache, self.rows, self.dtype, self.embeddings, self.causal = cache, rows, dtype, embeddings, causal
        self.table = torch.nn.Embedding(VOCAB, WIDTH)
        self.register_buffer("places", torch.randn(CONTEXT, WIDTH), persistent=True)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.head = torch.nn.Linear(WIDTH, VOCAB)
        if cache:
            shape = (1, CONTEXT, HEADS, WIDTH // HEADS) if cache == "custom" else (1, HEADS, CONTEXT, WIDTH // HEADS)
            self.register_buffer("keys", torch.zeros(shape))
            self.register_buffer("values", torch.zeros(shape))

    def split(self, x):
        return x.view(1, -1, HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, tokens, input_pos=None):
        n = tokens.shape[1]
        at = torch.arange(n)
        if input_pos is not None:
            at = at + input_pos if input_pos.shape[0] == 1 else input_pos
        x = (tokens if self.embeddings else self.table(tokens)) + self.places[at]
        keys, values = self.split(self.k(x)), self.split(self.v(x))
        if self.cache == "custom":
            start = input_pos[0].item()
            torch._check(start >= 0)
            torch._check(start + n <= CONTEXT)
            torch.ops.llama.update_cache(keys.transpose(1, 2), self.keys, start)
            torch.ops.llama.update_cache(values.transpose(1, 2), self.values, start)
            mixed = torch.ops.llama.custom_sdpa(self.split(self.q(x)).transpose(1, 2), self.keys, self.values, start, None, 0.0, True, 1.0)
            return self.finish(x, mixed.reshape(1, n, WIDTH))
        if self.cache:
            self.keys[:, :, at] = keys
            self.values[:, :, at] = values
            keys, values = self.keys, self.values
        scores = self.split(self.q(x)) @ keys.transpose(2, 3)
        if self.causal:
            visible = torch.arange(keys.shape[2]).unsqueeze(0) <= at.unsqueeze(1)
            scores = torch.where(visible, scores, torch.full_like(scores, float("-inf")))
        mixed = (torch.softmax(scores, -1) @ values).transpose(1, 2).reshape(1, n, WIDTH)
        return self.finish(x, mixed)

    def finish(self, x, mixed):
        x = x + self.o(mixed)
        if self.rows == "last":
            x = x[:, -1, :]
        return self.head(x).to(self.dtype)


class Running(torch.nn.Module):
    """A model whose state is a sum of all tokens so far: no cache by position."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.table, self.head = torch.nn.Embedding(VOCAB, WIDTH), torch.nn.Linear(WIDTH, VOCAB)
        self.register_buffer("sum", torch.zeros(1, 1, WIDTH))

    def forward(self, tokens, input_pos):
        self.sum.copy_(0.5 * self.sum + self.table(tokens) + 0.01 * input_pos.to(torch.float32))
        return self.head(torch.tanh(self.sum))


def facts(**more):
    return {"get_max_seq_len": CONTEXT, "get_max_context_len": CONTEXT, "get_vocab_size": VOCAB, "get_n_layers": 1,
            "get_bos_id": 1, "get_eos_ids": [2, 3], **more}


def lower(methods, shared=False, **more):
    programs = {name: export(module, args, dynamic_shapes=shapes, strict=True) for name, (module, args, shapes) in methods.items()}
    edge = to_edge(programs, constant_methods=facts(**more), compile_config=EdgeCompileConfig(_check_ir_validity=False))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=shared)))


def tokens(n, dtype=torch.long):
    return torch.randint(0, VOCAB, (1, n), dtype=dtype)


def main(out):
    at, n = torch.tensor([0]), Dim("n", min=1, max=CONTEXT - 1)
    some, whole = ({1: n}, None), ({1: Dim("n", min=1, max=CONTEXT)},)
    each = Dim("n", min=1, max=CONTEXT - 1)
    embed = Model(True).table
    cases = {
        "dynamic_last": (dict(forward=(Model(True, "last"), (tokens(4), at), some)), dict(use_kv_cache=True, enable_dynamic_shape=True)),
        "custom": (dict(forward=(Model("custom"), (tokens(1), at), None)), dict(use_kv_cache=True, use_sdpa_with_kv_cache=True)),
        "positions": (dict(forward=(Model(True), (tokens(4), torch.arange(4)), ({1: each}, {0: each}))), dict(use_kv_cache=True)),
        "one": (dict(forward=(Model(True), (tokens(1), at), None)), dict(use_kv_cache=True, enable_dynamic_shape=False)),
        "one_i32": (dict(forward=(Model(True), (tokens(1, torch.int), at.int()), None)), dict(use_kv_cache=True)),
        "one_f16": (dict(forward=(Model(True, dtype=torch.float16), (tokens(1), at), None)), dict(use_kv_cache=True)),
        "one_bf16": (dict(forward=(Model(True, dtype=torch.bfloat16), (tokens(1), at), None)), dict(use_kv_cache=True)),
        "nocache": (dict(forward=(Model(False), (tokens(4),), whole)), dict(use_kv_cache=False)),
        "nocache_padded": (dict(forward=(Model(False), (tokens(CONTEXT),), None)), dict(use_kv_cache=False)),
        "nocache_padded_last": (dict(forward=(Model(False, "last"), (tokens(CONTEXT),), None)), dict(use_kv_cache=False)),
        "nocache_both_ways": (dict(forward=(Model(False, causal=False), (tokens(CONTEXT),), None)), dict(use_kv_cache=False)),
        "four": (dict(forward=(Model(True), (tokens(4), at), None)), dict(use_kv_cache=True)),
        "running": (dict(forward=(Running(), (tokens(1), at), None)), dict(use_kv_cache=True)),
        "two_methods": (dict(prefill=(Model(True, "last"), (tokens(4), at), None), decode=(Model(True, "last"), (tokens(1), at), None)),
                        dict(use_kv_cache=True), True),
        "two_caches": (dict(prefill=(Model(True, "last"), (tokens(4), at), None), decode=(Model(True, "last"), (tokens(1), at), None)),
                       dict(use_kv_cache=True)),
        "features": (dict(token_embedding=(embed, (tokens(4),), some[:1]),
                          text_decoder=(Model(True, "last", embeddings=True), (torch.randn(1, 4, WIDTH), at), some)),
                     dict(use_kv_cache=True)),
    }
    given = tokens(9, torch.long)
    reference = Model(False)(given)[0].detach().contiguous()
    save_file({"tokens": given[0].contiguous(), "logits": reference}, f"{out}/reference.safetensors")
    for name, (methods, settings, *shared) in cases.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        program = lower(methods, bool(shared), **settings)
        with open(f"{out}/{name}.pte", "wb") as file:
            program.write_to_file(file)
        print(name, len(program.buffer))


if __name__ == "__main__":
    with torch.no_grad():
        torch.manual_seed(1)
        main(sys.argv[1])
