"""Models of other kinds than those of `export.py`: makers of them, and sizes of their inputs. `export.py --others` exports them.

Nothing was tuned for the first sixteen but `Temporal`. What was slow in models like the others was mended where its cause was.
"""
import torch
import torchvision
from torch import nn
from torch.nn import functional


def images(name, side):
    return lambda: getattr(torchvision.models, name)(weights=None), (1, 3, side, side)


def normed(layer, outputs, activation=None):
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), *([activation] if activation else []))


def silu(inputs, outputs, kernel=1, stride=1, groups=1):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return normed(layer, outputs, nn.SiLU())


def encoder(width, heads, layers, first=True):
    each = (nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=first)
            for _ in range(layers))
    return nn.Sequential(*each)


class Unet(nn.Module):
    """Pairs of convolutions down and up again, each level joined with its other side."""

    def __init__(self, widths):
        super().__init__()

        def pair(inputs, outputs):
            layers = (nn.Conv2d(each, outputs, 3, padding=1) for each in (inputs, outputs))
            return nn.Sequential(*(normed(layer, outputs, nn.ReLU()) for layer in layers))

        self.down = nn.ModuleList(pair(i, o) for i, o in zip((3, *widths), widths))
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * width, width, 2, 2) for width in widths[-2::-1])
        self.up = nn.ModuleList(pair(2 * width, width) for width in widths[-2::-1])
        self.labels = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        levels = []
        for down in self.down:
            x = down(functional.max_pool2d(x, 2) if levels else x)
            levels.append(x)
        for wider, up, level in zip(self.wider, self.up, levels[-2::-1]):
            x = up(torch.cat([level, wider(x)], 1))
        return self.labels(x)


class SuperResolution(nn.Module):
    """Residual convolutions, whose last channels are the pixels of a larger image."""

    def __init__(self, width, blocks, factor):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(blocks))
        self.last, self.larger = nn.Conv2d(width, 3 * factor**2, 3, padding=1), nn.PixelShuffle(factor)

    def forward(self, x):
        first = x = self.first(x)
        for block in self.blocks:
            x = x + 0.1 * block(x)
        return self.larger(self.last(x + first))


class Split(nn.Module):
    """Half of the channels goes through residual convolutions, and all that comes of it is joined."""

    def __init__(self, inputs, outputs, count):
        super().__init__()
        half = outputs // 2
        self.first, self.last = silu(inputs, outputs), silu((2 + count) * half, outputs)
        self.blocks = nn.ModuleList(nn.Sequential(silu(half, half, 3), silu(half, half, 3)) for _ in range(count))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    """Boxes at two scales, from features of three."""

    def __init__(self, w):
        super().__init__()
        self.a = nn.Sequential(silu(3, w, 3, 2), silu(w, 2 * w, 3, 2), Split(2 * w, 2 * w, 1), silu(2 * w, 4 * w, 3, 2),
                               Split(4 * w, 4 * w, 2))
        self.b = nn.Sequential(silu(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 2))
        self.c = nn.Sequential(silu(8 * w, 16 * w, 3, 2), Split(16 * w, 16 * w, 1))
        self.narrow, self.wide = silu(16 * w, 8 * w), silu(32 * w, 16 * w)
        self.to_b, self.to_a = Split(24 * w, 8 * w, 1), Split(12 * w, 4 * w, 1)
        self.heads = nn.ModuleList(
            nn.Sequential(silu(c, 64, 3), silu(64, 64, 3), nn.Conv2d(64, 84, 1)) for c in (4 * w, 8 * w))

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        pools = [self.narrow(self.c(b))]
        for _ in range(3):
            pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
        c = self.wide(torch.cat(pools, 1))
        b = self.to_b(torch.cat([functional.interpolate(c, scale_factor=2.0, mode="nearest"), b], 1))
        a = self.to_a(torch.cat([functional.interpolate(b, scale_factor=2.0, mode="nearest"), a], 1))
        return torch.cat([head(y).flatten(2) for head, y in zip(self.heads, (a, b))], 2).sigmoid()


class Vit(nn.Module):
    """A transformer over squares of an image."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.squares, self.label = nn.Conv2d(3, width, 16, 16), nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.layers, self.norm, self.labels = encoder(width, heads, layers), nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x):
        x = self.squares(x).flatten(2).transpose(1, 2)
        x = self.layers(torch.cat([self.label, x], 1) + self.places)
        return self.labels(self.norm(x)[:, 0])


class MobileVit(nn.Module):
    """Convolutions, then a transformer over the places of all squares of four pixels."""

    def __init__(self):
        super().__init__()

        def block(inputs, outputs):
            wide = 4 * inputs
            return nn.Sequential(silu(inputs, wide), silu(wide, wide, 3, 2, wide),
                                 normed(nn.Conv2d(wide, outputs, 1, bias=False), outputs))

        self.first = nn.Sequential(silu(3, 16, 3, 2), block(16, 32), block(32, 48), block(48, 64), silu(64, 64, 3))
        self.narrow, self.wide, self.join = nn.Conv2d(64, 96, 1), silu(96, 64), silu(128, 64, 3)
        self.layers, self.labels = encoder(96, 4, 2), nn.Linear(64, 100)

    def forward(self, x):
        first = self.first(x)
        x = self.narrow(first)
        batch, width, high, wide = x.shape
        x = x.reshape(batch, width, high // 2, 2, wide // 2, 2).permute(0, 3, 5, 2, 4, 1)
        x = self.layers(x.reshape(4 * batch, high * wide // 4, width))
        x = x.reshape(batch, 2, 2, high // 2, wide // 2, width).permute(0, 5, 3, 1, 4, 2)
        x = self.wide(x.reshape(batch, width, high, wide))
        return self.labels(self.join(torch.cat([first, x], 1)).mean((2, 3)))


class Lstm(nn.Module):
    """Two layers that read a sequence from both ends."""

    def __init__(self, features, width, labels):
        super().__init__()
        self.layers = nn.LSTM(features, width, 2, batch_first=True, bidirectional=True)
        self.labels = nn.Linear(2 * width, labels)

    def forward(self, x):
        return self.labels(self.layers(x)[0])


class Temporal(nn.Module):
    """Convolutions along time that see twice as far each, and nothing of the future."""

    def __init__(self, features, width, layers, labels):
        super().__init__()
        self.first, self.labels = nn.Conv1d(features, width, 1), nn.Linear(width, labels)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 3, dilation=2**layer), nn.BatchNorm1d(width), nn.ReLU(),
                          nn.Conv1d(width, width, 1))
            for layer in range(layers))

    def forward(self, x):
        x = self.first(x)
        for layer, block in enumerate(self.blocks):
            x = x + block(functional.pad(x, (2 * 2**layer, 0)))
        return self.labels(x.mean(-1))


class Wave(nn.Module):
    """A transformer over a wave that convolutions have shortened."""

    def __init__(self, width):
        super().__init__()
        shapes = (1, 10, 5), (width, 3, 2), (width, 3, 2), (width, 2, 2)
        self.shorter = nn.ModuleList(nn.Conv1d(inputs, width, kernel, stride) for inputs, kernel, stride in shapes)
        self.group_norm, self.norm = nn.GroupNorm(width, width), nn.LayerNorm(width)
        self.places = nn.Conv1d(width, width, 32, padding=16, groups=16)
        self.layers = encoder(width, 4, 3, first=False)

    def forward(self, x):
        for index, shorter in enumerate(self.shorter):
            x = shorter(x)
            x = functional.gelu(x if index else self.group_norm(x))
        x = self.norm(x.transpose(1, 2))
        return self.layers(x + functional.gelu(self.places(x.transpose(1, 2))[..., :-1]).transpose(1, 2))


class Poses(nn.Module):
    """Two resolutions side by side that exchange what they find."""

    def __init__(self, w):
        super().__init__()

        def layer(inputs, outputs, stride=1, kernel=3):
            return normed(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), outputs)

        self.first = nn.Sequential(layer(3, 32, 2), nn.ReLU(), layer(32, 32, 2), nn.ReLU())
        self.high, self.low = layer(32, w), layer(32, 2 * w, 2)
        self.stages = nn.ModuleList(
            nn.ModuleList([layer(w, w), layer(2 * w, 2 * w), layer(w, 2 * w, 2), layer(2 * w, w, 1, 1)]) for _ in range(4))
        self.labels = nn.Conv2d(3 * w, 17, 1)

    def forward(self, x):
        def larger(x):
            return functional.interpolate(x, scale_factor=2.0, mode="bilinear")

        x = self.first(x)
        high, low = self.high(x).relu(), self.low(x).relu()
        for same, deep, down, up in self.stages:
            high, low = same(high).relu(), deep(low).relu()
            high, low = (high + larger(up(low))).relu(), (low + down(high)).relu()
        return self.labels(torch.cat([high, larger(low)], 1))


class Atrous(nn.Module):
    """Dilated depthwise convolutions side by side, and the likeliest label of every pixel."""

    def __init__(self, w):
        super().__init__()

        def side(far):
            depthwise = nn.Conv2d(w, w, 3, padding=far, dilation=far, groups=w, bias=False)
            return nn.Sequential(normed(depthwise, w, nn.ReLU()), normed(nn.Conv2d(w, w, 1, bias=False), w, nn.ReLU()))

        self.first, self.labels = nn.Conv2d(3, w, 8, 8), nn.Conv2d(4 * w, 21, 1)
        self.sides = nn.ModuleList(side(far) for far in (1, 2, 4, 6))

    def forward(self, x):
        x = functional.hardswish(self.first(x))
        x = self.labels(torch.cat([side(x) for side in self.sides], 1))
        return functional.interpolate(x, scale_factor=4.0, mode="bilinear", align_corners=True).argmax(1)


def keywords(w):
    """A wide first convolution, then depthwise ones: words in a second of sound."""
    layers = [normed(nn.Conv2d(1, w, (10, 4), 2, (5, 1), bias=False), w, nn.ReLU())]
    for _ in range(4):
        layers.append(normed(nn.Conv2d(w, w, 3, 1, 1, groups=w, bias=False), w, nn.ReLU()))
        layers.append(normed(nn.Conv2d(w, w, 1, bias=False), w, nn.ReLU()))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(w, 12))


class Faces(nn.Module):
    """Inverted bottlenecks with a slope a channel for what is negative, and one window over all that is left."""

    def __init__(self, w):
        super().__init__()

        def block(inputs, outputs, wide, stride):
            return nn.Sequential(
                normed(nn.Conv2d(inputs, wide, 1, bias=False), wide, nn.PReLU(wide)),
                normed(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), wide, nn.PReLU(wide)),
                normed(nn.Conv2d(wide, outputs, 1, bias=False), outputs))

        self.first = normed(nn.Conv2d(3, w, 3, 2, 1, bias=False), w, nn.PReLU(w))
        self.down = nn.ModuleList([block(w, w, 2 * w, 2), block(w, 2 * w, 4 * w, 2), block(2 * w, 2 * w, 8 * w, 2)])
        self.same = nn.ModuleList(
            nn.ModuleList(block(each, each, 2 * each, 1) for _ in range(4)) for each in (w, 2 * w))
        self.last = nn.Sequential(
            nn.Conv2d(2 * w, 8 * w, 1), nn.PReLU(8 * w), nn.Conv2d(8 * w, 8 * w, 7, groups=8 * w), nn.Flatten(),
            nn.Linear(8 * w, 128))

    def forward(self, x):
        x = self.first(x)
        for down, blocks in zip(self.down, self.same):
            x = down(x)
            for block in blocks:
                x = x + block(x)
        return self.last(self.down[-1](x))


class Cheap(nn.Module):
    """Half of all channels come of the other half by a depthwise convolution."""

    def __init__(self, stages):
        super().__init__()
        self.first, inputs = normed(nn.Conv2d(3, 16, 3, 2, 1, bias=False), 16, nn.ReLU()), 16
        self.wide, self.down, self.narrow, self.beside = (nn.ModuleList() for _ in range(4))
        for wide, outputs, stride in stages:
            self.wide.append(self.halves(inputs, wide, nn.ReLU()))
            depthwise = normed(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), wide)
            self.down.append(depthwise if stride > 1 else nn.Identity())
            self.narrow.append(self.halves(wide, outputs, nn.Identity()))
            self.beside.append(nn.Identity() if (inputs, stride) == (outputs, 1) else nn.Sequential(
                normed(nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), inputs),
                normed(nn.Conv2d(inputs, outputs, 1, bias=False), outputs)))
            inputs = outputs
        self.labels = nn.Linear(inputs, 1000)

    @staticmethod
    def halves(inputs, outputs, activation):
        half = outputs // 2
        return nn.ModuleList([
            normed(nn.Conv2d(inputs, half, 1, bias=False), half, activation),
            normed(nn.Conv2d(half, half, 3, 1, 1, groups=half, bias=False), half, activation)])

    def forward(self, x):
        def both(halves, x):
            x = halves[0](x)
            return torch.cat([x, halves[1](x)], 1)

        x = self.first(x)
        for wide, down, narrow, beside in zip(self.wide, self.down, self.narrow, self.beside):
            x = both(narrow, down(both(wide, x))) + beside(x)
        return self.labels(x.mean((2, 3)))


class Vocoder(nn.Module):
    """Sound of a spectrum: transposed convolutions along time, residual dilated ones behind each."""

    def __init__(self, w, widenings):
        super().__init__()
        self.first, self.wider, self.blocks = nn.Conv1d(80, w, 7, padding=3), nn.ModuleList(), nn.ModuleList()
        for kernel, stride in widenings:
            self.wider.append(nn.ConvTranspose1d(w, w // 2, kernel, stride, (kernel - stride) // 2))
            w //= 2
            self.blocks.append(nn.ModuleList(nn.ModuleList(
                nn.Conv1d(w, w, k, padding=far * (k // 2), dilation=far) for far in (1, 3, 5)) for k in (3, 7)))
        self.last = nn.Conv1d(w, 1, 7, padding=3)

    def forward(self, x):
        def through(block, x):
            for layer in block:
                x = x + layer(functional.leaky_relu(x, 0.1))
            return x

        x = self.first(x)
        for wider, (short, long) in zip(self.wider, self.blocks):
            x = wider(functional.leaky_relu(x, 0.1))
            x = (through(short, x) + through(long, x)) / 2
        return self.last(functional.leaky_relu(x)).tanh()


class Letters(nn.Module):
    """Convolutions of a line of writing, and recurrence in both directions along it."""

    def __init__(self, w):
        super().__init__()

        def layer(inputs, outputs):
            return normed(nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), outputs, nn.ReLU())

        self.image = nn.Sequential(
            layer(1, w), nn.MaxPool2d(2), layer(w, 2 * w), nn.MaxPool2d(2), layer(2 * w, 4 * w), layer(4 * w, 4 * w),
            nn.MaxPool2d((2, 1)), layer(4 * w, 8 * w), nn.MaxPool2d((2, 1)), nn.Conv2d(8 * w, 8 * w, (2, 1)), nn.ReLU())
        self.line = nn.LSTM(8 * w, 3 * w, bidirectional=True, batch_first=True)
        self.labels = nn.Linear(6 * w, 80)

    def forward(self, x):
        return self.labels(self.line(self.image(x).squeeze(2).transpose(1, 2))[0])


class Gated(nn.Module):
    """Convolutions along time, ever further apart, each gated, and the sum of what every one of them says."""

    def __init__(self, w, layers):
        super().__init__()
        self.w, self.first = w, nn.Conv1d(1, w, 1)
        self.apart = nn.ModuleList(
            nn.Conv1d(w, 2 * w, 3, padding=2**each, dilation=2**each) for each in range(layers))
        self.mixed = nn.ModuleList(nn.Conv1d(w, 2 * w, 1) for _ in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(w, w, 1), nn.ReLU(), nn.Conv1d(w, 1, 1))

    def forward(self, x):
        x, said = self.first(x), 0
        for apart, mixed in zip(self.apart, self.mixed):
            values, gates = apart(x).chunk(2, 1)
            step, says = mixed(values.tanh() * gates.sigmoid()).chunk(2, 1)
            x, said = x + step, said + says
        return self.last(said)


class Mixer(nn.Module):
    """Layers across the patches of an image and across channels, in turn."""

    def __init__(self, w, patches, layers):
        super().__init__()

        def layer(each, factor):
            return nn.Sequential(nn.Linear(each, factor * each), nn.GELU(), nn.Linear(factor * each, each))

        self.first = nn.Conv2d(3, w, 16, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(w) for _ in range(2 * layers))
        self.patches = nn.ModuleList(layer(patches, 2) for _ in range(layers))
        self.channels = nn.ModuleList(layer(w, 3) for _ in range(layers))
        self.labels = nn.Linear(w, 100)

    def forward(self, x):
        x = self.first(x).flatten(2).transpose(1, 2)
        for patches, channels, one, two in zip(self.patches, self.channels, self.norms[::2], self.norms[1::2]):
            x = x + patches(one(x).transpose(1, 2)).transpose(1, 2)
            x = x + channels(two(x))
        return self.labels(x.mean(1))


def digits():
    """Small images through few channels."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def depths(w):
    """Depthwise separable layers down, and up again by repeating pixels."""

    def layer(inputs, outputs, stride=1, kernel=3):
        depthwise = nn.Conv2d(inputs, inputs, kernel, stride, kernel // 2, groups=inputs, bias=False)
        return nn.Sequential(
            normed(depthwise, inputs, nn.ReLU6()), normed(nn.Conv2d(inputs, outputs, 1, bias=False), outputs, nn.ReLU6()))

    def wider(inputs):
        return nn.Sequential(layer(inputs, inputs // 2, kernel=5), nn.Upsample(scale_factor=2, mode="nearest"))

    return nn.Sequential(
        normed(nn.Conv2d(3, w, 3, 2, 1, bias=False), w, nn.ReLU6()), layer(w, 2 * w), layer(2 * w, 4 * w, 2),
        layer(4 * w, 8 * w, 2), layer(8 * w, 16 * w, 2), layer(16 * w, 16 * w),
        wider(16 * w), wider(8 * w), wider(4 * w), wider(2 * w), nn.Conv2d(w, 1, 1))


# Channels inside a block, its results, and its stride.
CHEAP = ((16, 16, 1), (48, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1), (240, 80, 2), (200, 80, 1), (184, 80, 1),
         (480, 112, 1), (672, 160, 2), (960, 160, 1))
OTHERS = {
    "efficientnet_b0": images("efficientnet_b0", 224),
    "regnet_y_400mf": images("regnet_y_400mf", 224),
    "mnasnet1_0": images("mnasnet1_0", 224),
    "resnext50": images("resnext50_32x4d", 128),
    "resnet18": images("resnet18", 128),
    "unet": (lambda: Unet((16, 32, 64, 128)), (1, 3, 128, 128)),
    "super_resolution": (lambda: SuperResolution(32, 6, 4), (1, 3, 64, 64)),
    "detector": (lambda: Detector(16), (1, 3, 256, 256)),
    "poses": (lambda: Poses(18), (1, 3, 192, 192)),
    "atrous": (lambda: Atrous(96), (1, 3, 256, 256)),
    "vit": (lambda: Vit(192, 3, 6), (1, 3, 224, 224)),
    "mobilevit": (MobileVit, (1, 3, 128, 128)),
    "lstm": (lambda: Lstm(64, 128, 32), (1, 40, 64)),
    "temporal": (lambda: Temporal(40, 64, 6, 20), (1, 40, 200)),
    "wave": (lambda: Wave(128), (1, 1, 8000)),
    "keywords": (lambda: keywords(64), (1, 1, 49, 10)),
    "shufflenet_v2_x0_5": images("shufflenet_v2_x0_5", 224),
    "faces": (lambda: Faces(64), (1, 3, 112, 112)),
    "cheap": (lambda: Cheap(CHEAP), (1, 3, 192, 192)),
    "vocoder": (lambda: Vocoder(128, ((16, 8), (8, 4), (4, 2))), (1, 80, 32)),
    "letters": (lambda: Letters(32), (1, 1, 32, 160)),
    "gated": (lambda: Gated(48, 8), (1, 1, 2000)),
    "mixer": (lambda: Mixer(192, 100, 6), (1, 3, 160, 160)),
    "digits": (digits, (1, 1, 28, 28)),
    "depths": (lambda: depths(32), (1, 3, 128, 128)),
}
# Models whose activations get their ranges at run time, and those that are exported as floats alone.
OTHERS_DYNAMIC = ("vit", "lstm", "wave", "mixer")
OTHERS_FLOATS = ("mobilevit",)
