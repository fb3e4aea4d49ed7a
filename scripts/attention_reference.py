#!/usr/bin/env python3
"""Has PyTorch's nn.MultiheadAttention compute what day 25's layer is compared with: weights, inputs
and results as JSON.

    scripts/attention_reference.py > day25_attention/data/pytorch_reference.json          the small cases that the repository keeps
    scripts/attention_reference.py --case 2,37,41,24,4,1,0,1,cross                        one case

A case is batch, queries, keys, width, heads, bias, causal, padding (0 or 1) and which inputs are
one tensor: `self` (all three), `memory` (key and value) or `cross` (none). Needs PyTorch; runs on
the CPU, in FP32. Padding never hides all keys, for which PyTorch answers NaN.
"""

import argparse
import json

import torch

CASES = [
    "1,5,5,8,1,1,0,0,self",
    "2,7,7,12,3,1,1,0,self",
    "2,6,6,8,4,0,0,1,self",
    "3,5,5,8,2,1,1,1,self",
    "2,3,9,8,2,1,0,1,memory",
    "1,9,4,8,2,1,1,0,cross",
    "2,4,6,12,2,0,0,1,cross",
]


def numbers(tensor):
    """FP32, each with the nine digits that bring it back exactly."""
    return [float(f"{x:.9g}") for x in tensor.detach().flatten().tolist()]


def make_case(text, seed):
    *integers, inputs = text.split(",")
    batch, queries, keys, width, heads, bias, causal, padding = map(int, integers)
    torch.manual_seed(seed)
    layer = torch.nn.MultiheadAttention(width, heads, bias=bool(bias), batch_first=True)
    if bias:  # they begin as zeros, which would hide mistakes
        torch.nn.init.normal_(layer.in_proj_bias)
        torch.nn.init.normal_(layer.out_proj.bias)
    query = torch.randn(batch, queries, width)
    key = query if inputs == "self" else torch.randn(batch, keys, width)
    value = torch.randn(batch, keys, width) if inputs == "cross" else key
    hidden = torch.zeros(batch, keys, dtype=torch.bool)
    if padding:
        hidden = torch.rand(batch, keys) < 0.4
        hidden[:, 0] = False
    future = torch.ones(queries, keys, dtype=torch.bool).triu(1) if causal else None
    with torch.no_grad():
        out, _ = layer(query, key, value, key_padding_mask=hidden if padding else None, attn_mask=future)
    return {
        "name": text,
        "batch": batch,
        "queries": queries,
        "keys": keys,
        "width": width,
        "heads": heads,
        "bias": bool(bias),
        "causal": bool(causal),
        "inputs": inputs,
        "padding": hidden.flatten().int().tolist() if padding else [],
        "in_weight": numbers(layer.in_proj_weight),
        "out_weight": numbers(layer.out_proj.weight),
        "in_bias": numbers(layer.in_proj_bias) if bias else [],
        "out_bias": numbers(layer.out_proj.bias) if bias else [],
        "query": numbers(query),
        "key": [] if inputs == "self" else numbers(key),
        "value": numbers(value) if inputs == "cross" else [],
        "out": numbers(out),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--case", action="append", help="instead of the cases that the repository keeps")
    arguments = parser.parse_args()
    cases = [make_case(text, seed) for seed, text in enumerate(arguments.case or CASES)]
    made_by = f"scripts/attention_reference.py, PyTorch {torch.__version__}"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    print(f'{{"made_by":{json.dumps(made_by)},"cases":[\n{lines}\n]}}')


if __name__ == "__main__":
    main()
