//! Programs of one operator each, at shapes of deployed models: mobile and residual image networks, small transformers.
//!
//! Inputs are the caller's and are read where they are; what is an input can be no constant, so nothing is computed at
//! load but what weights are packed into.

use edgepack_builder::pte::{Arg, Outs, ProgramBuilder, TensorSpec, ValueId};
use edgepack_builder::{BuildError, args, tensors};
use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::{TensorLayout, TensorView};

/// One operator at one shape.
pub struct Case {
    /// The operator, without its overload, and what it is given.
    pub name: String,
    pub work: Work,
    /// Bytes of the program.
    pub bytes: Vec<u8>,
}

/// Least work that the operator has to do.
#[derive(Clone, Copy)]
pub enum Work {
    /// So many multiplications, each with an addition.
    Products(usize),
    /// So many bytes, read and written together.
    Moves(usize),
}

/// Rows of the embedding table.
const WORDS: usize = 4096;
/// Bytes of the largest constant.
pub const MOST_DATA: usize = WORDS * 768 * 4;

const FLOAT: usize = size_of::<f32>();

/// A program in the making. Constants are the beginning of the same data.
struct Sketch<'d> {
    program: ProgramBuilder<'d>,
    data: &'d [u8],
}

impl<'d> Sketch<'d> {
    fn input(&mut self, sizes: &[usize]) -> Result<ValueId, BuildError> {
        self.input_of(ScalarType::FLOAT, sizes)
    }

    fn input_of(&mut self, dtype: ScalarType, sizes: &[usize]) -> Result<ValueId, BuildError> {
        self.program.method("forward").input(TensorSpec::new(dtype, sizes).unplanned())
    }

    fn weight(&mut self, sizes: &[usize]) -> Result<Arg, BuildError> {
        let layout = TensorLayout::contiguous(ScalarType::FLOAT, sizes).expect("sizes that fit memory");
        let view = TensorView::of::<f32>(sizes, &self.data[..layout.byte_len()]).expect("as many bytes as that");
        Ok(self.program.constant(&format!("w{sizes:?}"), &view)?.into())
    }

    /// Calls an operator that has one result.
    fn call<const N: usize>(&mut self, name: &str, args: [Arg; N], sizes: &[usize]) -> Result<ValueId, BuildError> {
        self.outs(name, args, float(sizes))
    }

    fn outs<O: Outs, const N: usize>(&mut self, name: &str, args: [Arg; N], outs: O) -> Result<O::Ids, BuildError> {
        self.program.method("forward").call(name, args, outs)
    }
}

fn float(sizes: &[usize]) -> TensorSpec {
    TensorSpec::new(ScalarType::FLOAT, sizes)
}

/// A case whose result is what `sketch` returns.
fn case<'d>(
    data: &'d [u8],
    name: &str,
    work: Work,
    sketch: impl FnOnce(&mut Sketch<'d>) -> Result<ValueId, BuildError>,
) -> Case {
    let build = || {
        let mut made = Sketch { program: ProgramBuilder::new(), data };
        let out = sketch(&mut made)?;
        made.program.method("forward").output(out)?;
        made.program.finish()?.to_bytes()
    };
    let bytes = build().unwrap_or_else(|error: BuildError| panic!("{name}: {error}"));
    Case { name: name.to_owned(), work, bytes }
}

/// A large square product with packed weights: the rate that other products are compared with.
pub fn square(data: &[u8], size: usize) -> Case {
    case(data, "mm", Work::Products(size * size * size), |s| {
        let (x, w) = (s.input(&[size, size])?, s.weight(&[size, size])?);
        s.call("aten::mm.out", args![x, w], &[size, size])
    })
}

/// Arguments of [`convolution`].
struct Image {
    name: &'static str,
    channels: [usize; 2],
    /// Height and width, in and out.
    sides: [usize; 2],
    kernel: usize,
    stride: i64,
    groups: usize,
    transposed: bool,
}

fn convolution(data: &[u8], image: &Image) -> Case {
    let Image { name, channels: [from, to], sides: [side, out], kernel, stride, groups, transposed } = *image;
    // Every input element meets the whole kernel where the convolution is transposed, every output element otherwise.
    let (places, deep) = if transposed { (from * side * side, to / groups) } else { (to * out * out, from / groups) };
    case(data, name, Work::Products(places * deep * kernel * kernel), |s| {
        let x = s.input(&[1, from, side, side])?;
        let sizes = if transposed { [from, to / groups] } else { [to, from / groups] };
        let (w, bias) = (s.weight(&[sizes[0], sizes[1], kernel, kernel])?, s.weight(&[to])?);
        let padding = if transposed { 0 } else { kernel as i64 / 2 };
        let args = args![
            x,
            w,
            bias,
            vec![stride; 2],
            vec![padding; 2],
            vec![1i64; 2],
            transposed,
            vec![0i64; 2],
            groups as i64
        ];
        s.call("aten::convolution.out", args, &[1, to, out, out])
    })
}

/// Operators that multiply.
pub fn products(data: &[u8]) -> Vec<Case> {
    let image = |name, channels, sides, kernel, stride, groups| {
        convolution(data, &Image { name, channels, sides, kernel, stride, groups, transposed: false })
    };
    vec![
        case(data, "addmm, 64 x 512, weight 512 x 512", Work::Products(64 * 512 * 512), |s| {
            let (x, w, bias) = (s.input(&[64, 512])?, s.weight(&[512, 512])?, s.weight(&[512])?);
            s.call("aten::addmm.out", args![bias, x, w], &[64, 512])
        }),
        case(data, "linear, 128 x 768, weight 768 x 768", Work::Products(128 * 768 * 768), |s| {
            let (x, w, bias) = (s.input(&[1, 128, 768])?, s.weight(&[768, 768])?, s.weight(&[768])?);
            s.call("aten::linear.out", args![x, w, bias], &[1, 128, 768])
        }),
        case(data, "mm, both computed, 256 x 256 x 256", Work::Products(256 * 256 * 256), |s| {
            let (a, b) = (s.input(&[256, 256])?, s.input(&[256, 256])?);
            s.call("aten::mm.out", args![a, b], &[256, 256])
        }),
        case(data, "bmm, 8 heads, 128 x 64 x 128", Work::Products(8 * 128 * 64 * 128), |s| {
            let (a, b) = (s.input(&[8, 128, 64])?, s.input(&[8, 64, 128])?);
            s.call("aten::bmm.out", args![a, b], &[8, 128, 128])
        }),
        image("convolution 3 x 3, 64 to 64, 56 x 56", [64, 64], [56, 56], 3, 1, 1),
        image("convolution 3 x 3, stride 2, 3 to 32, 224 x 224", [3, 32], [224, 112], 3, 2, 1),
        image("convolution 1 x 1, 96 to 24, 56 x 56", [96, 24], [56, 56], 1, 1, 1),
        image("convolution 1 x 1, 160 to 960, 7 x 7", [160, 960], [7, 7], 1, 1, 1),
        image("convolution 3 x 3, 4 groups, 64 to 64, 56 x 56", [64, 64], [56, 56], 3, 1, 4),
        image("convolution depthwise 3 x 3, 144, 56 x 56", [144, 144], [56, 56], 3, 1, 144),
        image("convolution depthwise 3 x 3, stride 2, 144, 56 x 56", [144, 144], [56, 28], 3, 2, 144),
        convolution(
            data,
            &Image {
                name: "convolution transposed 2 x 2, 64 to 32, 28 x 28",
                channels: [64, 32],
                sides: [28, 56],
                kernel: 2,
                stride: 2,
                groups: 1,
                transposed: true,
            },
        ),
    ]
}

/// Operators of one tensor that give one of the same shape.
fn same<const N: usize>(
    data: &[u8],
    name: &str,
    operator: &str,
    sizes: &[usize],
    args: impl FnOnce(ValueId) -> [Arg; N],
) -> Case {
    let count: usize = sizes.iter().product();
    case(data, name, Work::Moves(2 * FLOAT * count), |s| {
        let x = s.input(sizes)?;
        s.call(operator, args(x), sizes)
    })
}

/// Operators whose least work is reading and writing.
pub fn moves(data: &[u8]) -> Vec<Case> {
    let wide = [128, 3072];
    let image = [1, 64, 56, 56];
    let pixels = 64 * 56 * 56;
    let floats = |count: usize| Work::Moves(FLOAT * count);
    let mut all = vec![
        case(data, "addmm, 1 x 1024, weight 1024 x 1024", floats(1024 * 1024), |s| {
            let (x, w, bias) = (s.input(&[1, 1024])?, s.weight(&[1024, 1024])?, s.weight(&[1024])?);
            s.call("aten::addmm.out", args![bias, x, w], &[1, 1024])
        }),
        case(data, "linear, 1 x 1024, weight 1024 x 1024", floats(1024 * 1024), |s| {
            let (x, w) = (s.input(&[1, 1024])?, s.weight(&[1024, 1024])?);
            s.call("aten::linear.out", args![x, w], &[1, 1024])
        }),
        same(data, "_softmax, rows of 8 x 128 x 128", "aten::_softmax.out", &[8, 128, 128], |x| args![x, -1i64, false]),
        same(data, "_softmax, channels of 1 x 21 x 128 x 128", "aten::_softmax.out", &[1, 21, 128, 128], |x| {
            args![x, 1i64, false]
        }),
        case(data, "native_layer_norm, 128 x 768", floats(2 * 128 * 768), |s| {
            let (x, w) = (s.input(&[1, 128, 768])?, s.weight(&[768])?);
            let outs = [float(&[1, 128, 768]), float(&[1, 128, 1]), float(&[1, 128, 1])];
            let [out, ..] =
                s.outs("aten::native_layer_norm.out", args![x, vec![768i64], w.clone(), w, 1e-5f64], outs)?;
            Ok(out)
        }),
        case(data, "native_group_norm, 8 groups of 64 x 56 x 56", floats(2 * pixels), |s| {
            let (x, w) = (s.input(&image)?, s.weight(&[64])?);
            let args = args![x, w.clone(), w, 1i64, 64i64, 56i64 * 56, 8i64, 1e-5f64];
            let [out, ..] =
                s.outs("aten::native_group_norm.out", args, [float(&image), float(&[1, 8]), float(&[1, 8])])?;
            Ok(out)
        }),
        case(data, "_native_batch_norm, 64 x 56 x 56", floats(2 * pixels), |s| {
            let (x, w) = (s.input(&image)?, s.weight(&[64])?);
            let args = args![x, w.clone(), w.clone(), w.clone(), w, 0.1f64, 1e-5f64];
            let outs = [float(&image), float(&[0]), float(&[0])];
            let [out, ..] = s.outs("aten::_native_batch_norm_legit_no_training.out", args, outs)?;
            Ok(out)
        }),
        same(data, "gelu, 128 x 3072", "aten::gelu.out", &wide, |x| args![x]),
        same(data, "gelu, tanh, 128 x 3072", "aten::gelu.out", &wide, |x| args![x, "tanh"]),
        same(data, "sigmoid, 128 x 3072", "aten::sigmoid.out", &wide, |x| args![x]),
        same(data, "hardtanh, 64 x 56 x 56", "aten::hardtanh.out", &image, |x| args![x, 0.0f64, 6.0f64]),
        case(data, "add, 64 x 56 x 56", floats(3 * pixels), |s| {
            let (a, b) = (s.input(&image)?, s.input(&image)?);
            s.call("aten::add.out", args![a, b], &image)
        }),
        case(data, "mul, 64 x 56 x 56 by channels", floats(2 * pixels), |s| {
            let (a, b) = (s.input(&image)?, s.input(&[1, 64, 1, 1])?);
            s.call("aten::mul.out", args![a, b], &image)
        }),
        case(data, "mul, 128 x 3072 by a row", floats(2 * 128 * 3072), |s| {
            let (a, b) = (s.input(&wide)?, s.input(&[3072])?);
            s.call("aten::mul.out", args![a, b], &wide)
        }),
        case(data, "mean, images of 64 x 56 x 56", floats(pixels), |s| {
            let x = s.input(&image)?;
            s.call("aten::mean.out", args![x, vec![-1i64, -2], true], &[1, 64, 1, 1])
        }),
        case(data, "sum, columns of 512 x 1024", floats(512 * 1024), |s| {
            let x = s.input(&[512, 1024])?;
            s.call("aten::sum.IntList_out", args![x, vec![0i64]], &[1024])
        }),
    ];
    all.extend(pictures(data));
    all.extend(copies(data));
    all
}

/// Pooling and resizing.
fn pictures(data: &[u8]) -> Vec<Case> {
    let pixels = 64 * 112 * 112;
    let pool = |name: &str, kernel: i64, padding: i64| {
        let out = [1, 64, 56, 56];
        // The largest elements, and where they were.
        case(data, name, Work::Moves(FLOAT * pixels + pixels / 4 * (FLOAT + 8)), |s| {
            let x = s.input(&[1, 64, 112, 112])?;
            let args = args![x, vec![kernel; 2], vec![2i64; 2], vec![padding; 2]];
            let outs = [float(&out), TensorSpec::new(ScalarType::LONG, out)];
            let [out, _] = s.outs("aten::max_pool2d_with_indices.out", args, outs)?;
            Ok(out)
        })
    };
    vec![
        pool("max_pool2d 2 x 2, 64 x 112 x 112", 2, 0),
        pool("max_pool2d 3 x 3, stride 2, 64 x 112 x 112", 3, 1),
        case(data, "avg_pool2d 2 x 2, 64 x 112 x 112", Work::Moves(FLOAT * (pixels + pixels / 4)), |s| {
            let x = s.input(&[1, 64, 112, 112])?;
            s.call("aten::avg_pool2d.out", args![x, vec![2i64; 2], vec![2i64; 2]], &[1, 64, 56, 56])
        }),
        case(
            data,
            "upsample_bilinear2d, 32 x 56 x 56 to 112 x 112",
            Work::Moves(FLOAT * (pixels / 8 + pixels / 2)),
            |s| {
                let x = s.input(&[1, 32, 56, 56])?;
                s.call("aten::upsample_bilinear2d.vec_out", args![x, vec![112i64; 2], false, ()], &[1, 32, 112, 112])
            },
        ),
    ]
}

/// Elements from here to there.
fn copies(data: &[u8]) -> Vec<Case> {
    let floats = |count: usize| Work::Moves(FLOAT * count);
    let count = 1 << 20;
    vec![
        case(data, "permute_copy, 128 x 12 x 64 to 12 x 128 x 64", floats(2 * 128 * 12 * 64), |s| {
            let x = s.input(&[1, 128, 12, 64])?;
            s.call("aten::permute_copy.out", args![x, vec![0i64, 2, 1, 3]], &[1, 12, 128, 64])
        }),
        case(data, "permute_copy, 512 x 768 to 768 x 512", floats(2 * 512 * 768), |s| {
            let x = s.input(&[512, 768])?;
            s.call("aten::permute_copy.out", args![x, vec![1i64, 0]], &[768, 512])
        }),
        case(data, "cat, channels of two 32 x 56 x 56", floats(4 * 32 * 56 * 56), |s| {
            let (a, b) = (s.input(&[1, 32, 56, 56])?, s.input(&[1, 32, 56, 56])?);
            s.call("aten::cat.out", args![tensors![a, b], 1i64], &[1, 64, 56, 56])
        }),
        case(data, "embedding, 128 of 4096 rows of 768", floats(2 * 128 * 768), |s| {
            let (words, table) = (s.input_of(ScalarType::LONG, &[1, 128])?, s.weight(&[WORDS, 768])?);
            s.call("aten::embedding.out", args![table, words], &[1, 128, 768])
        }),
        case(data, "slice_copy, half the columns of 512 x 1024", floats(512 * 1024), |s| {
            let x = s.input(&[512, 1024])?;
            s.call("aten::slice_copy.Tensor_out", args![x, 1i64, 512i64, 1024i64], &[512, 512])
        }),
        case(data, "quantize_per_tensor, a million", Work::Moves(5 * count), |s| {
            let x = s.input(&[count])?;
            let args = args![x, 0.05f64, 3i64, -128i64, 127i64, ScalarType::CHAR];
            let spec = TensorSpec::new(ScalarType::CHAR, [count]);
            s.outs("quantized_decomposed::quantize_per_tensor.out", args, spec)
        }),
        case(data, "dequantize_per_tensor, a million", Work::Moves(5 * count), |s| {
            let x = s.input_of(ScalarType::CHAR, &[count])?;
            let args = args![x, 0.05f64, 3i64, -128i64, 127i64, ScalarType::CHAR];
            s.call("quantized_decomposed::dequantize_per_tensor.out", args, &[count])
        }),
    ]
}
