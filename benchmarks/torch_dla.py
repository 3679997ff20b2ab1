"""Dual learning as a plain loop in PyTorch: the same network, losses and optimiser as `elute.neural.learners.dla`.

    python torch_dla.py FEATURES STEPS REPEATS cpu|cuda

This is not ULTRA's code, which is in no registry: it is what a careful user would write, so a kinder peer. ULTRA
itself makes both optimisers anew at every step. Batch 256, lists of 10; clicks are drawn and features looked up on the
fly, as there. Prints steps a second as JSON.
"""

import json
import statistics
import sys
import time
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

features, steps, repeats = map(int, sys.argv[1:4])
device = sys.argv[4]
LISTS, POSITIONS, BATCH = 500, 10, 256
torch.manual_seed(0)

x = torch.randn(LISTS * POSITIONS, features, device=device)
relevance = torch.rand(LISTS * POSITIONS, device=device) * 0.9 + 0.1
bias = torch.tensor([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06], device=device)
sizes = (features, 512, 256, 128)
layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ELU(), nn.Dropout(0.1))]
ranker = nn.Sequential(*layers, nn.Linear(128, 1)).to(device)
dual = nn.Parameter(torch.zeros(POSITIONS, device=device))
rules = [torch.optim.Adagrad(p, lr=0.05, initial_accumulator_value=0.1) for p in (ranker.parameters(), [dual])]


def step() -> None:
    lists = torch.randint(0, LISTS, (BATCH,), device=device)
    rows = lists[:, None] * POSITIONS + torch.arange(POSITIONS, device=device)
    clicks = (torch.rand(rows.shape, device=device) < relevance[rows] * bias).float()
    scores = ranker(x[rows])[..., 0]
    logits = functional.elu(dual)
    by_propensity = torch.exp(logits[0] - logits).detach()
    by_relevance = torch.exp((scores[:, :1] - scores).clamp(max=10)).detach()
    of_ranker = -(clicks * by_propensity * functional.log_softmax(scores, -1)).sum(-1).mean()
    shown = functional.log_softmax(logits.expand_as(scores), -1)
    of_dual = -(clicks * by_relevance * shown).sum(-1).mean()
    for rule in rules:
        rule.zero_grad()
    (of_ranker + of_dual).backward()
    nn.utils.clip_grad_norm_(ranker.parameters(), 5.0)
    nn.utils.clip_grad_norm_([dual], 5.0)
    for rule in rules:
        rule.step()


def wait() -> None:
    if device == "cuda":
        torch.cuda.synchronize()


rates, used = [], []
for turn in range(repeats + 1):
    wait()
    began, processor = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    wait()
    if turn:
        rates.append(steps / (time.perf_counter() - began))
        used.append((time.process_time() - processor) / steps)
print(json.dumps({"steps_per_second": statistics.median(rates), "processor_seconds_a_step": statistics.median(used)}))
