"""Further models: makers of them, and sizes of their inputs. `export.py --more` exports them.

Nothing was tuned for them when they were first measured. Images that stay with their channels outermost and transposed convolutions to
one channel, which `style`, `espcn`, `vae` and `fsrcnn` showed to be slow, were mended where the cause was.
"""
import torch
import torchvision
from torch import nn
from torch.nn import functional

from others import images, normed


def convolution(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    layer = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return normed(layer, outputs, activation())


def labels(name, side, **options):
    return lambda: getattr(torchvision.models, name)(weights=None, **options), (1, 3, side, side)


class Lraspp(nn.Module):
    """A label for every pixel, from two resolutions of a mobile net."""

    def __init__(self):
        super().__init__()
        make = torchvision.models.segmentation.lraspp_mobilenet_v3_large
        self.inner = make(weights=None, weights_backbone=None, num_classes=21)

    def forward(self, x):
        return self.inner(x)["out"]


class Style(nn.Module):
    """An image in the manner of another: padding that mirrors, and a norm of each channel of each image."""

    def __init__(self):
        super().__init__()

        def layers(inputs, outputs, kernel, stride=1):
            mirrored = nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride)
            return *mirrored, nn.InstanceNorm2d(outputs, affine=True)

        relu = nn.ReLU()
        self.down = nn.Sequential(*layers(3, 16, 9), relu, *layers(16, 32, 3, 2), relu, *layers(32, 64, 3, 2), relu)
        self.residual = nn.ModuleList(nn.Sequential(*layers(64, 64, 3), relu, *layers(64, 64, 3)) for _ in range(3))
        self.up = nn.Sequential(
            nn.Upsample(scale_factor=2), *layers(64, 32, 3), relu, nn.Upsample(scale_factor=2), *layers(32, 16, 3), relu,
            nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for layers in self.residual:
            x = x + layers(x)
        return self.up(x)


class Parted(nn.Module):
    """Half of the channels through pairs of convolutions, one behind the other, and all results joined."""

    def __init__(self, inputs, outputs, count=1):
        super().__init__()
        half, silu = outputs // 2, nn.SiLU
        self.first = convolution(inputs, outputs, 1, activation=silu)
        self.pairs = nn.ModuleList(
            nn.Sequential(convolution(half, half, activation=silu), convolution(half, half, activation=silu)) for _ in range(count))
        self.last = convolution(half * (2 + count), outputs, 1, activation=silu)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for pair in self.pairs:
            parts.append(parts[-1] + pair(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    """Boxes at two scales: pooling over ever larger windows, and features of coarse scales joined with fine ones."""

    def __init__(self, w):
        super().__init__()

        def down(inputs, outputs):
            return convolution(inputs, outputs, 3, 2, activation=nn.SiLU)

        def head(inputs):
            return nn.Sequential(convolution(inputs, 4 * w, activation=nn.SiLU), nn.Conv2d(4 * w, 64, 1))

        self.fine = nn.Sequential(
            down(3, w), down(w, 2 * w), Parted(2 * w, 2 * w), down(2 * w, 4 * w), Parted(4 * w, 4 * w, 2))
        self.middle = nn.Sequential(down(4 * w, 8 * w), Parted(8 * w, 8 * w, 2))
        self.coarse = nn.Sequential(down(8 * w, 16 * w), Parted(16 * w, 16 * w))
        self.before = convolution(16 * w, 8 * w, 1, activation=nn.SiLU)
        self.behind = convolution(32 * w, 16 * w, 1, activation=nn.SiLU)
        self.joined = nn.ModuleList((Parted(24 * w, 8 * w), Parted(12 * w, 4 * w)))
        self.heads = nn.ModuleList((head(8 * w), head(4 * w)))

    def forward(self, x):
        fine = self.fine(x)
        middle = self.middle(fine)
        pools = [self.before(self.coarse(middle))]
        for _ in range(3):
            pools.append(functional.max_pool2d(pools[-1], 5, 1, 2))
        coarse = self.behind(torch.cat(pools, 1))
        middle = self.joined[0](torch.cat([functional.interpolate(coarse, scale_factor=2), middle], 1))
        fine = self.joined[1](torch.cat([functional.interpolate(middle, scale_factor=2), fine], 1))
        places = self.heads[0](middle).flatten(2).unflatten(1, (4, 16))
        return torch.softmax(places, 2), torch.sigmoid(self.heads[1](fine).flatten(2))


class ConformerLayer(nn.Module):
    """Products, attention, a gated convolution along time and products again, each around a sum."""

    def __init__(self, w, heads):
        super().__init__()

        def products():
            return nn.Sequential(nn.LayerNorm(w), nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, w))

        self.heads = heads
        self.before, self.behind = products(), products()
        self.norms = nn.ModuleList(nn.LayerNorm(w) for _ in range(3))
        self.inputs, self.output = nn.Linear(w, 3 * w), nn.Linear(w, w)
        self.gate, self.last = nn.Conv1d(w, 2 * w, 1), nn.Conv1d(w, w, 1)
        self.depthwise = nn.Sequential(nn.Conv1d(w, w, 31, padding=15, groups=w), nn.BatchNorm1d(w), nn.SiLU())

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        rows = self.inputs(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = rows.permute(2, 0, 3, 1, 4).unbind()
        met = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.output(met.transpose(1, 2).flatten(2))
        gated = functional.glu(self.gate(self.norms[1](x).transpose(1, 2)), 1)
        x = x + self.last(self.depthwise(gated)).transpose(1, 2)
        return self.norms[2](x + 0.5 * self.behind(x))


class Points(nn.Module):
    """A label for every point of a cloud, from what it is and from the greatest of all."""

    def __init__(self):
        super().__init__()

        def layer(inputs, outputs):
            return nn.Sequential(nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU())

        self.near = nn.Sequential(layer(3, 64), layer(64, 64))
        self.all = nn.Sequential(layer(64, 128), layer(128, 512))
        self.labels = nn.Sequential(layer(576, 256), layer(256, 128), nn.Conv1d(128, 13, 1))

    def forward(self, x):
        near = self.near(x)
        all_points = self.all(near).amax(2, keepdim=True).expand(-1, -1, near.shape[2])
        return functional.log_softmax(self.labels(torch.cat([near, all_points], 1)), 1)


class Noise(nn.Module):
    """What is left of an image without its noise."""

    def __init__(self, w, layers):
        super().__init__()
        ends = nn.Conv2d(1, w, 3, padding=1), nn.Conv2d(w, 1, 3, padding=1)
        self.noise = nn.Sequential(ends[0], nn.ReLU(), *(convolution(w, w) for _ in range(layers)), ends[1])

    def forward(self, x):
        return x - self.noise(x)


class Demucs(nn.Module):
    """Sound down through gated convolutions of eight samples, a recurrent layer, and up again."""

    def __init__(self, w, levels):
        super().__init__()
        self.down, self.up, inputs = nn.ModuleList(), nn.ModuleList(), 1
        for level in range(levels):
            o = w * 2**level
            self.down.append(nn.Sequential(nn.Conv1d(inputs, o, 8, 4, 2), nn.ReLU(), nn.Conv1d(o, 2 * o, 1), nn.GLU(1)))
            last = nn.ReLU() if level else nn.Identity()
            self.up.insert(0, nn.Sequential(
                nn.Conv1d(o, 2 * o, 1), nn.GLU(1), nn.ConvTranspose1d(o, inputs, 8, 4, 2), last))
            inputs = o
        self.recurrent = nn.LSTM(inputs, inputs, 1, batch_first=True)

    def forward(self, x):
        sides = []
        for layer in self.down:
            x = layer(x)
            sides.append(x)
        x = self.recurrent(x.transpose(1, 2))[0].transpose(1, 2)
        for layer in self.up:
            x = layer(x + sides.pop())
        return x


def separable(w):
    """Depthwise and single-pixel convolutions in turn."""
    layers, inputs = [convolution(3, w, 3, 2)], w
    for outputs, stride in ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)):
        layers += [convolution(inputs, inputs, 3, stride, inputs), convolution(inputs, outputs * w, 1)]
        inputs = outputs * w
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def generator(w):
    """An image of a list of numbers."""

    def wider(inputs, outputs):
        return normed(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1, bias=False), outputs, nn.LeakyReLU(0.2))

    return nn.Sequential(
        nn.Linear(100, 8 * w * 16), nn.Unflatten(1, (8 * w, 4, 4)), wider(8 * w, 4 * w), wider(4 * w, 2 * w), wider(2 * w, w),
        nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh())


def larger(w, narrow):
    """A larger image by one transposed convolution at the end, with a slope a channel."""

    def layer(inputs, outputs, kernel):
        return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), nn.PReLU(outputs)

    narrow_layers = (each for _ in range(4) for each in layer(narrow, narrow, 3))
    return nn.Sequential(
        *layer(1, w, 5), *layer(w, narrow, 1), *narrow_layers, *layer(narrow, w, 1),
        nn.ConvTranspose2d(w, 1, 9, 2, 4, output_padding=1))


def pixels_of_channels():
    """A larger image whose pixels are the last channels."""
    return nn.Sequential(
        nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
        nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))


class Hourglass(nn.Module):
    """Halves of halves of an image, each added to the whole."""

    def __init__(self, w, levels):
        super().__init__()
        self.beside, self.before, self.behind = convolution(w, w), convolution(w, w), convolution(w, w)
        self.inner = Hourglass(w, levels - 1) if levels > 1 else convolution(w, w)

    def forward(self, x):
        inner = self.behind(self.inner(self.before(functional.max_pool2d(x, 2))))
        return self.beside(x) + functional.interpolate(inner, scale_factor=2)


def joints(w):
    """Places of joints of a body."""
    first = convolution(3, w, 7, 2), convolution(w, w), nn.MaxPool2d(2)
    return nn.Sequential(*first, Hourglass(w, 4), nn.Conv2d(w, 17, 1))


def convnext():
    """Windows of 7 by 7, a norm of the channels and two products, at three scales."""
    scale = torchvision.models.convnext.CNBlockConfig
    return torchvision.models.convnext.ConvNeXt(
        [scale(48, 96, 2), scale(96, 192, 2), scale(192, None, 3)], num_classes=100)


class Decoder(nn.Module):
    """An image of a small one of four channels, through residual convolutions behind norms of groups."""

    def __init__(self, w):
        super().__init__()

        def block(w):
            each = (each for _ in range(2) for each in (nn.GroupNorm(8, w), nn.SiLU(), nn.Conv2d(w, w, 3, padding=1)))
            return nn.Sequential(*each)

        self.first, self.narrower = nn.Conv2d(4, w, 3, padding=1), nn.Conv2d(w, w // 2, 3, padding=1)
        self.blocks = nn.ModuleList((block(w), block(w), block(w // 2)))
        self.last = nn.Conv2d(w // 2, 3, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks[:2]:
            x = x + block(x)
        x = self.narrower(functional.interpolate(x, scale_factor=2))
        return torch.tanh(self.last(functional.silu(x + self.blocks[2](x))))


class Recurrent(nn.Module):
    """Two layers with one hyperbolic tangent a step, and a label at the end."""

    def __init__(self):
        super().__init__()
        self.layers, self.labels = nn.RNN(40, 96, 2, batch_first=True), nn.Linear(96, 10)

    def forward(self, x):
        return self.labels(self.layers(x)[0][:, -1])


class Rhythm(nn.Module):
    """Windows along time and along frequency, in turn."""

    def __init__(self):
        super().__init__()

        def layer(inputs, outputs, kernel, stride):
            padding = kernel[0] // 2, kernel[1] // 2
            return normed(nn.Conv2d(inputs, outputs, kernel, stride, padding), outputs, nn.ELU())

        self.features = nn.Sequential(
            layer(1, 16, (5, 1), (2, 1)), layer(16, 32, (1, 5), (1, 2)), layer(32, 32, (3, 3), (2, 2)), nn.MaxPool2d((2, 1)),
            layer(32, 64, (3, 1), (1, 1)), layer(64, 64, (1, 3), (1, 1)))
        self.labels = nn.Linear(64, 12)

    def forward(self, x):
        return torch.log_softmax(self.labels(self.features(x).mean((2, 3))), -1)


MORE = {
    "googlenet": labels("googlenet", 160, aux_logits=False, init_weights=False),
    "inception": labels("inception_v3", 160, aux_logits=False, init_weights=False),
    "alexnet": images("alexnet", 224),
    "vgg11": images("vgg11", 96),
    "efficientnet_v2_s": images("efficientnet_v2_s", 128),
    "swin": images("swin_t", 112),
    "lraspp": (Lraspp, (1, 3, 192, 192)),
    "style": (Style, (1, 3, 96, 96)),
    "yolo": (lambda: Yolo(16), (1, 3, 192, 192)),
    "conformer": (lambda: nn.Sequential(nn.Linear(80, 144), *(ConformerLayer(144, 4) for _ in range(3))), (1, 120, 80)),
    "points": (Points, (1, 3, 1024)),
    "noise": (lambda: Noise(48, 8), (1, 1, 96, 96)),
    "demucs": (lambda: Demucs(32, 4), (1, 1, 8192)),
    "separable": (lambda: separable(32), (1, 3, 160, 160)),
    "generator": (lambda: generator(32), (1, 100)),
    "fsrcnn": (lambda: larger(56, 12), (1, 1, 96, 96)),
    "espcn": (pixels_of_channels, (1, 1, 120, 120)),
    "joints": (lambda: joints(40), (1, 3, 128, 128)),
    "convnext": (convnext, (1, 3, 128, 128)),
    "vae": (lambda: Decoder(64), (1, 4, 32, 32)),
    "rnn": (Recurrent, (1, 50, 40)),
    "rhythm": (Rhythm, (1, 1, 64, 100)),
}
# Models whose activations get their ranges at run time.
MORE_DYNAMIC = ("swin", "conformer", "rnn", "convnext")
