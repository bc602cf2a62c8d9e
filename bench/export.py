"""Exports the models that `edgepack-bench` measures: NAME.pte, NAME_xnn.pte lowered to XNNPACK, NAME_xnn_int8.pte quantised.

usage: python export.py [--onnx | --others | --more] FOLDER [NAME ...]

With --others they are the models of `others.py`, with --more those of `more.py`. Needs executorch, torch and torchvision; with
--onnx it writes NAME.onnx alone, for other engines, and needs onnx and onnxscript as well. Weights are random, with a fixed seed:
what is measured is time.
"""
import os
import sys

import torch
import torchvision
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
from executorch.exir import EdgeCompileConfig, to_edge, to_edge_transform_and_lower
from torch import nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from more import MORE, MORE_DYNAMIC
from others import OTHERS, OTHERS_DYNAMIC, OTHERS_FLOATS


class Layer(nn.Module):
    """Attention of every place to every place, then two products; each behind a norm and around a sum."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.products = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        rows = self.inputs(self.before(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = rows.permute(2, 0, 3, 1, 4).unbind()
        weights = torch.softmax(query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5, -1)
        x = x + self.output((weights @ value).transpose(1, 2).flatten(2))
        return x + self.products(self.between(x))


def transformer(layers, width, heads):
    return nn.Sequential(*(Layer(width, heads) for _ in range(layers)), nn.LayerNorm(width))


def dense(*widths):
    pairs = zip(widths, widths[1:])
    layers = [layer for narrow, wide in pairs for layer in (nn.Linear(narrow, wide), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class Speech(nn.Module):
    """Convolutions along time, gated and depthwise, each around a sum: what encoders of speech are made of."""

    def __init__(self, features, width, layers):
        super().__init__()
        self.first = nn.Conv1d(features, width, 3, stride=2, padding=1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.depthwise = nn.ModuleList(nn.Conv1d(width, width, 15, padding=7, groups=width) for _ in range(layers))
        self.last = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))

    def forward(self, x):
        x = self.first(x)
        for gate, depthwise, last in zip(self.gates, self.depthwise, self.last):
            x = x + last(nn.functional.silu(depthwise(nn.functional.glu(gate(x), 1))))
        return x


class Recurrent(nn.Module):
    """Two recurrent layers over time, and a product for every step of it."""

    def __init__(self, features, width, labels):
        super().__init__()
        self.layers = nn.GRU(features, width, 2, batch_first=True)
        self.labels = nn.Linear(width, labels)

    def forward(self, x):
        hidden, _ = self.layers(x)
        return self.labels(hidden)


class Segmenter(nn.Module):
    """Strided convolutions, dilated ones side by side, and a label for every pixel of the input."""

    def __init__(self, width, labels):
        super().__init__()

        def convolution(inputs, outputs, **how):
            layers = nn.Conv2d(inputs, outputs, 3, bias=False, **how), nn.BatchNorm2d(outputs), nn.ReLU6()
            return nn.Sequential(*layers)

        self.first = nn.Sequential(
            convolution(3, width // 2, stride=2, padding=1), convolution(width // 2, width, stride=2, padding=1))
        self.sides = nn.ModuleList(convolution(width, width, padding=far, dilation=far) for far in (1, 2, 4))
        self.labels = nn.Conv2d(len(self.sides) * width, labels, 1)

    def forward(self, x):
        y = self.first(x)
        y = self.labels(torch.cat([side(y) for side in self.sides], 1))
        return nn.functional.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)


def images(name, side):
    return lambda: getattr(torchvision.models, name)(weights=None), (1, 3, side, side)


# Makers of models, and sizes of their inputs.
MODELS = {
    "mlp": (lambda: dense(784, 1024, 1024, 10), (1, 784)),
    "transformer": (lambda: transformer(4, 256, 4), (1, 64, 256)),
    "mobilenet_v2": images("mobilenet_v2", 224),
    "mobilenet_v3_large": images("mobilenet_v3_large", 224),
    "resnet50": images("resnet50", 160),
    "squeezenet": images("squeezenet1_1", 224),
    "speech": (lambda: Speech(80, 144, 4), (1, 80, 400)),
    "gru": (lambda: Recurrent(80, 192, 48), (1, 50, 80)),
    "segmenter": (lambda: Segmenter(48, 12), (1, 3, 192, 192)),
    "shufflenet_v2": images("shufflenet_v2_x1_0", 224),
    "densenet121": images("densenet121", 128),
    "deep": (lambda: transformer(200, 32, 2), (1, 8, 32)),
}
# Models whose activations get their ranges at run time.
DYNAMIC = ("mlp", "transformer", *OTHERS_DYNAMIC, *MORE_DYNAMIC)
# Exported as floats alone: what the table compares in 8 bits are the others.
FLOATS = ("gru", "segmenter", "shufflenet_v2", "densenet121", *OTHERS_FLOATS)
# Exported in its portable form alone: measured for its number of values.
PORTABLE = ("deep",)


def quantised(model, inputs, dynamic):
    config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(), XNNPACKQuantizer().set_global(config))
    prepared(*inputs)
    return torch.export.export(convert_pt2e(prepared), inputs)


def write(folder, name, program):
    with open(os.path.join(folder, f"{name}.pte"), "wb") as file:
        program.to_executorch().write_to_file(file)
    print(name, flush=True)


def build(name):
    make, sizes = (MODELS | OTHERS | MORE)[name]
    torch.manual_seed(0)
    return make().eval(), (torch.randn(sizes),)


@torch.no_grad()
def export_onnx(folder, name):
    model, inputs = build(name)
    torch.onnx.export(model, inputs, os.path.join(folder, f"{name}.onnx"), dynamo=True, external_data=False, verbose=False)


@torch.no_grad()
def export(folder, name):
    model, inputs = build(name)
    exported = torch.export.export(model, inputs)
    write(folder, name, to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False)))
    if name in PORTABLE:
        return
    forms = {"_xnn": exported}
    if name not in FLOATS:
        forms["_xnn_int8"] = quantised(model, inputs, name in DYNAMIC)
    for suffix, program in forms.items():
        write(folder, name + suffix, to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()]))


if __name__ == "__main__":
    sets = {"--onnx": MODELS, "--others": OTHERS, "--more": MORE}
    flag = sys.argv[1] if sys.argv[1] in sets else None
    target, *chosen = sys.argv[1 + bool(flag):]
    os.makedirs(target, exist_ok=True)
    for model_name in chosen or sets.get(flag, MODELS):
        (export_onnx if flag == "--onnx" else export)(target, model_name)
