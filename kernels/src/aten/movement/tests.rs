//! Every engine of the family against results written out by hand or by plain indexing.

use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::{Kernel, KernelError};
use edgepack_format::scalar::{Bool, ScalarType};

fn kernel(name: &str) -> &'static Kernel {
    super::TABLES.iter().flat_map(|table| table.iter()).find(|kernel| kernel.name == name).expect("a registered kernel")
}

/// 0, 1, 2, … in index order.
fn counting(sizes: &[usize]) -> Arg {
    let count = sizes.iter().product::<usize>() as i32;
    Arg::tensor(sizes, &(0..count).collect::<Vec<i32>>())
}

fn outs(name: &str, args: &[Arg]) -> Result<Vec<OwnedTensor>, KernelError> {
    call(kernel(name), args)
}

/// Calls with an INT output of these sizes.
fn ints(name: &str, args: &[Arg], sizes: &[usize]) -> Result<Vec<i32>, KernelError> {
    let mut args = args.to_vec();
    args.push(Arg::out(ScalarType::INT, sizes));
    outs(name, &args).map(|outs| outs[0].as_slice::<i32>().unwrap())
}

fn list(items: &[i64]) -> Arg {
    Arg::Ints(items.to_vec())
}

#[test]
fn views_rearrange() {
    let x = counting(&[2, 3]);
    assert_eq!(ints("aten::permute_copy.out", &[x.clone(), list(&[1, 0])], &[3, 2]).unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(ints("aten::t_copy.out", std::slice::from_ref(&x), &[3, 2]).unwrap(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(ints("aten::flip.out", &[x.clone(), list(&[-1])], &[2, 3]).unwrap(), [2, 1, 0, 5, 4, 3]);
    assert_eq!(ints("aten::select_copy.int_out", &[x.clone(), Arg::int(1), Arg::int(-1)], &[2]).unwrap(), [2, 5]);
    let slice = [x.clone(), Arg::int(1), Arg::None, Arg::int(99), Arg::int(2)];
    assert_eq!(ints("aten::slice_copy.Tensor_out", &slice, &[2, 2]).unwrap(), [0, 2, 3, 5]);
    let expand = [counting(&[2, 1]), list(&[2, -1, 3]), Arg::bool(false)];
    assert_eq!(ints("aten::expand_copy.out", &expand, &[2, 2, 3]).unwrap(), [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
    assert_eq!(ints("aten::repeat.out", &[counting(&[2]), list(&[2, 2])], &[2, 4]).unwrap(), [0, 1, 0, 1, 0, 1, 0, 1]);
    let diagonal = [counting(&[3, 3]), Arg::int(1), Arg::int(0), Arg::int(1)];
    assert_eq!(ints("aten::diagonal_copy.out", &diagonal, &[2]).unwrap(), [1, 5]);
    let unfold = [counting(&[5]), Arg::int(0), Arg::int(3), Arg::int(2)];
    assert_eq!(ints("aten::unfold_copy.out", &unfold, &[2, 3]).unwrap(), [0, 1, 2, 2, 3, 4]);
    let shuffle = [counting(&[1, 4, 1, 2]), Arg::int(2)];
    assert_eq!(ints("aten::pixel_shuffle.out", &shuffle, &[1, 1, 2, 4]).unwrap(), [0, 2, 1, 3, 4, 6, 5, 7]);
    let unshuffle = [counting(&[1, 1, 2, 4]), Arg::int(2)];
    assert_eq!(ints("aten::pixel_unshuffle.out", &unshuffle, &[1, 4, 1, 2]).unwrap(), [0, 2, 1, 3, 4, 6, 5, 7]);
}

/// Compares with the results of eager PyTorch.
#[test]
fn bytes_are_seen_as_another_type() {
    let view = |x: Arg, dtype: ScalarType, sizes: &[usize]| {
        outs("aten::view_copy.dtype_out", &[x, Arg::int(dtype.0.into()), Arg::out(dtype, sizes)])
    };
    let x = Arg::tensor(&[2, 2], &[1.0f32, -1.0, 0.0, f32::INFINITY]);
    let same = view(x.clone(), ScalarType::INT, &[2, 2]).unwrap();
    assert_eq!(same[0].as_slice::<i32>().unwrap(), [0x3f80_0000, -0x4080_0000, 0, 0x7f80_0000]);
    let smaller = view(x.clone(), ScalarType::SHORT, &[2, 4]).unwrap();
    assert_eq!(smaller[0].as_slice::<i16>().unwrap(), [0, 0x3f80, 0, -0x4080, 0, 0, 0, 0x7f80]);
    let larger = view(x.clone(), ScalarType::LONG, &[2, 1]).unwrap();
    assert_eq!(larger[0].as_slice::<i64>().unwrap(), [-0x407f_ffff_c080_0000, 0x7f80_0000_0000_0000]);
    let one = Arg::tensor::<f32>(&[], &[1.0]);
    assert_eq!(view(one.clone(), ScalarType::INT, &[]).unwrap()[0].as_slice::<i32>().unwrap(), [0x3f80_0000]);
    assert_eq!(view(Arg::tensor::<f32>(&[3, 0], &[]), ScalarType::LONG, &[3, 0]).unwrap()[0].bytes(), [0u8; 0]);

    // Room is given back, and what is larger than the room is refused.
    let out = OwnedTensor::zeros(ScalarType::BYTE, &[4, 16]).dynamic();
    let bytes = [x.clone(), Arg::int(0), Arg::Tensor(out)];
    assert_eq!(outs("aten::view_copy.dtype_out", &bytes).unwrap()[0].layout().sizes(), [2, 8]);
    assert!(view(x.clone(), ScalarType::BYTE, &[2, 4]).is_err());
    // No rows of whole elements, no dimension to scale, another type than the output's.
    assert!(view(x.clone(), ScalarType::COMPLEX_DOUBLE, &[2, 1]).is_err());
    assert!(view(one, ScalarType::BYTE, &[4]).is_err());
    let other = [x, Arg::int(ScalarType::FLOAT.0.into()), Arg::out(ScalarType::INT, &[2, 2])];
    assert!(outs("aten::view_copy.dtype_out", &other).is_err());
}

#[test]
fn views_reshape() {
    let x = counting(&[2, 3]);
    assert_eq!(ints("aten::view_copy.out", &[x.clone(), list(&[-1, 2])], &[3, 2]).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(ints("aten::unsqueeze_copy.out", &[x.clone(), Arg::int(-1)], &[2, 3, 1]).unwrap().len(), 6);
    assert_eq!(ints("aten::squeeze_copy.dims_out", &[counting(&[1, 2, 1]), list(&[0, 1])], &[2, 1]).unwrap(), [0, 1]);
    assert!(ints("aten::view_copy.out", &[x.clone(), list(&[4])], &[4]).is_err());
    assert!(ints("aten::view_copy.out", &[counting(&[0]), list(&[-1, 0])], &[0, 0]).is_err());
    let error = ints("aten::select_copy.int_out", &[x.clone(), Arg::int(5), Arg::int(0)], &[2]).unwrap_err();
    assert_eq!(error.message, "`dim` is 5, `self` has 2 dimensions");
    assert!(ints("aten::permute_copy.out", &[x, list(&[0, 0])], &[2, 2]).is_err());
    assert!(ints("aten::pixel_shuffle.out", &[counting(&[1, 4, 1, 1]), Arg::int(1 << 32)], &[1, 1, 1, 1]).is_err());
}

#[test]
fn as_strided_stays_inside() {
    let strided = |sizes: &[i64], strides: &[i64], start| {
        let count: usize = sizes.iter().product::<i64>() as usize;
        let out = Arg::Tensor(OwnedTensor::zeros(ScalarType::INT, &[sizes[0] as usize, count / sizes[0] as usize]));
        let args = [counting(&[6]), list(sizes), list(strides), Arg::int(start), out];
        outs("aten::as_strided_copy.out", &args).map(|outs| outs[0].as_slice::<i32>().unwrap())
    };
    assert_eq!(strided(&[2, 2], &[1, 2], 1).unwrap(), [1, 3, 2, 4]);
    assert!(strided(&[2, 2], &[3, 3], 0).is_err());
    assert!(strided(&[2, 2], &[1, -1], 1).is_err());
}

#[test]
fn copies_convert_types_and_dim_orders() {
    let values: Vec<f32> = (0..24).map(|i| i as f32 + 0.75).collect();
    let x = OwnedTensor::new(&[1, 2, 3, 4], &values);
    let out = OwnedTensor::zeros(ScalarType::INT, &[1, 2, 3, 4]).with_dim_order(&[0, 2, 3, 1]);
    let args = [Arg::Tensor(x), Arg::bool(false), Arg::Ints(vec![0, 2, 3, 1]), Arg::Tensor(out)];
    let out = outs("dim_order_ops::_to_dim_order_copy.out", &args).unwrap()[0].as_slice::<i32>().unwrap();
    let want: Vec<i32> = (0..24).map(|i| (i % 2) * 12 + i / 2).collect();
    assert_eq!(out, want);
    let back = OwnedTensor::new(&[1, 2, 3, 4], &want).with_dim_order(&[0, 2, 3, 1]);
    let args = [Arg::Tensor(back), Arg::bool(false), Arg::None, Arg::out(ScalarType::INT, &[1, 2, 3, 4])];
    let out = outs("dim_order_ops::_clone_dim_order.out", &args).unwrap()[0].as_slice::<i32>().unwrap();
    assert_eq!(out, (0..24).collect::<Vec<i32>>());
    let args = [Arg::out(ScalarType::LONG, &[2, 2]), counting(&[2]), Arg::bool(false)];
    assert_eq!(outs("aten::copy_", &args).unwrap()[0].as_slice::<i64>().unwrap(), [0, 1, 0, 1]);
}

#[test]
fn joins_place_and_convert() {
    let tensors = |tensors: &[&Arg]| {
        let items = tensors.iter().map(|arg| match arg {
            Arg::Tensor(tensor) => Some(tensor.clone()),
            _ => None,
        });
        Arg::Tensors(items.collect())
    };
    let (a, b) = (counting(&[2, 2]), counting(&[2, 1]));
    let empty = Arg::tensor::<i32>(&[0], &[]);
    assert_eq!(
        ints("aten::cat.out", &[tensors(&[&a, &empty, &b]), Arg::int(-1)], &[2, 3]).unwrap(),
        [0, 1, 0, 2, 3, 1]
    );
    assert_eq!(
        ints("aten::stack.out", &[tensors(&[&a, &a]), Arg::int(1)], &[2, 2, 2]).unwrap(),
        [0, 1, 0, 1, 2, 3, 2, 3]
    );
    let halves = Arg::tensor(&[2, 1], &[0.5f32, 1.5]);
    let args = [tensors(&[&a, &halves]), Arg::int(1), Arg::out(ScalarType::FLOAT, &[2, 3])];
    assert_eq!(outs("aten::cat.out", &args).unwrap()[0].as_slice::<f32>().unwrap(), [0.0, 1.0, 0.5, 2.0, 3.0, 1.5]);
    assert!(ints("aten::cat.out", &[tensors(&[&a, &b]), Arg::int(0)], &[4, 2]).is_err());
    assert!(ints("aten::cat.out", &[tensors(&[&a, &halves]), Arg::int(1)], &[2, 3]).is_err());
}

#[test]
fn parts_are_split_and_written() {
    let out = |sizes: &[usize]| Some(OwnedTensor::zeros(ScalarType::INT, sizes));
    let parts = Arg::Tensors(vec![out(&[2, 1]), out(&[2, 2])]);
    let split =
        outs("aten::split_with_sizes_copy.out", &[counting(&[2, 3]), list(&[1, 2]), Arg::int(1), parts]).unwrap();
    assert_eq!(split[0].as_slice::<i32>().unwrap(), [0, 3]);
    assert_eq!(split[1].as_slice::<i32>().unwrap(), [1, 2, 4, 5]);
    let parts = Arg::Tensors(vec![out(&[2]), out(&[1])]);
    let split = outs("aten::split_copy.Tensor_out", &[counting(&[3]), Arg::int(2), Arg::int(0), parts]).unwrap();
    assert_eq!((split[0].as_slice::<i32>().unwrap(), split[1].as_slice::<i32>().unwrap()), (vec![0, 1], vec![2]));
    let parts = Arg::Tensors(vec![out(&[2]), out(&[2]), out(&[2])]);
    let parts = outs("aten::unbind_copy.int_out", &[counting(&[2, 3]), Arg::int(1), parts]).unwrap();
    assert_eq!(parts[2].as_slice::<i32>().unwrap(), [2, 5]);
    let args = [counting(&[4]), Arg::tensor(&[2], &[8i32, 9]), Arg::int(0), Arg::int(1), Arg::None, Arg::int(2)];
    assert_eq!(ints("aten::slice_scatter.out", &args, &[4]).unwrap(), [0, 8, 2, 9]);
    let args = [counting(&[2, 2]), Arg::tensor(&[2], &[8i32, 9]), Arg::int(1), Arg::int(-1)];
    assert_eq!(ints("aten::select_scatter.out", &args, &[2, 2]).unwrap(), [0, 8, 2, 9]);
}

#[test]
fn padding_adds_and_cuts() {
    let pad = |pads: &[i64], sizes: &[usize]| {
        ints("aten::constant_pad_nd.out", &[counting(&[2, 3]), list(pads), Arg::int(7)], sizes)
    };
    assert_eq!(pad(&[1, 0, 0, 1], &[3, 4]).unwrap(), [7, 0, 1, 2, 7, 3, 4, 5, 7, 7, 7, 7]);
    assert_eq!(pad(&[-1, 1], &[2, 3]).unwrap(), [1, 2, 7, 4, 5, 7]);
    assert!(pad(&[-4, 0], &[2, 3]).is_err());
    assert!(pad(&[i64::MAX, i64::MAX], &[2, 3]).is_err());
    assert!(pad(&[1], &[2, 3]).is_err());
}

#[test]
fn indices_select_like_pytorch() {
    let x = counting(&[3, 4]);
    let long = |sizes: &[usize], values: &[i64]| Some(OwnedTensor::new(sizes, values));
    let get = |indices: Vec<Option<OwnedTensor>>, sizes: &[usize]| {
        ints("aten::index.Tensor_out", &[x.clone(), Arg::Tensors(indices)], sizes)
    };
    assert_eq!(get(vec![long(&[2], &[2, -3])], &[2, 4]).unwrap(), [8, 9, 10, 11, 0, 1, 2, 3]);
    assert_eq!(get(vec![None, long(&[2], &[1, 1])], &[3, 2]).unwrap(), [1, 1, 5, 5, 9, 9]);
    assert_eq!(get(vec![long(&[2, 1], &[0, 2]), long(&[2], &[3, 0])], &[2, 2]).unwrap(), [3, 0, 11, 8]);
    let mask: Vec<Bool> = (0..12).map(|i| Bool::from(i % 5 == 0)).collect();
    assert_eq!(get(vec![Some(OwnedTensor::new(&[3, 4], &mask))], &[3]).unwrap(), [0, 5, 10]);
    let rows = OwnedTensor::new(&[3], &[Bool(0), Bool(9), Bool(0)]);
    assert_eq!(get(vec![Some(rows), long(&[2], &[0, 3])], &[2]).unwrap(), [4, 7]);
    assert!(get(vec![long(&[1], &[3])], &[1, 4]).is_err());
    assert!(get(vec![None, None, long(&[1], &[0])], &[1]).is_err());

    // Selected dimensions that are not neighbours come first.
    let cube = counting(&[2, 3, 2]);
    let apart = Arg::Tensors(vec![long(&[2], &[0, 1]), None, long(&[2], &[1, 0])]);
    assert_eq!(ints("aten::index.Tensor_out", &[cube, apart], &[2, 3]).unwrap(), [1, 3, 5, 6, 8, 10]);
}

#[test]
fn indexed_writes_replace_or_add() {
    let index = Arg::Tensors(vec![Some(OwnedTensor::new(&[3], &[1i64, 1, -1]))]);
    let put = |accumulate| {
        let args = [counting(&[4]), index.clone(), Arg::tensor(&[3], &[10i32, 20, 30]), Arg::bool(accumulate)];
        ints("aten::index_put.out", &args, &[4]).unwrap()
    };
    assert_eq!(put(false), [0, 20, 2, 30]);
    assert_eq!(put(true), [0, 31, 2, 33]);
    let rows = Arg::Tensors(vec![Some(OwnedTensor::new(&[1], &[0i32]))]);
    let args = [counting(&[2, 40]), rows, Arg::tensor(&[1], &[5i32]), Arg::bool(false)];
    let out = outs("aten::index_put_", &args).unwrap()[0].as_slice::<i32>().unwrap();
    assert!(out[..40].iter().all(|&x| x == 5) && out[40..].iter().copied().eq(40..80));
}

#[test]
fn picks_along_a_dimension() {
    let x = counting(&[2, 3]);
    let index = Arg::tensor(&[2], &[2i64, 0]);
    assert_eq!(ints("aten::index_select.out", &[x.clone(), Arg::int(1), index], &[2, 2]).unwrap(), [2, 0, 5, 3]);
    let index = Arg::tensor(&[2, 2], &[0i64, 1, 2, 0]);
    let args = [x.clone(), Arg::int(1), index.clone(), Arg::bool(false)];
    assert_eq!(ints("aten::gather.out", &args, &[2, 2]).unwrap(), [0, 1, 5, 3]);
    let src = Arg::tensor(&[2, 2], &[7i32, 8, 9, 10]);
    let args = [x.clone(), Arg::int(1), index.clone(), src.clone()];
    assert_eq!(ints("aten::scatter.src_out", &args, &[2, 3]).unwrap(), [7, 8, 2, 10, 4, 9]);
    assert_eq!(ints("aten::scatter_add.out", &args, &[2, 3]).unwrap(), [7, 9, 2, 13, 4, 14]);
    let args = [x.clone(), Arg::int(1), index, Arg::int(1)];
    assert_eq!(ints("aten::scatter.value_out", &args, &[2, 3]).unwrap(), [1, 1, 2, 1, 4, 1]);
    let bad = [x.clone(), Arg::int(0), Arg::tensor(&[1, 1], &[2i64]), Arg::bool(false)];
    assert!(ints("aten::gather.out", &bad, &[1, 1]).is_err());
    let words = [x, Arg::tensor(&[2], &[1i64, 0]), Arg::int(-1), Arg::bool(false), Arg::bool(false)];
    assert_eq!(ints("aten::embedding.out", &words, &[2, 3]).unwrap(), [3, 4, 5, 0, 1, 2]);
}

#[test]
fn rolls_pads_and_triangles_remap() {
    let x = counting(&[2, 3]);
    assert_eq!(ints("aten::roll.out", &[x.clone(), list(&[1]), list(&[-1])], &[2, 3]).unwrap(), [2, 0, 1, 5, 3, 4]);
    assert_eq!(
        ints("aten::roll.out", &[x.clone(), list(&[i64::MIN, i64::MAX]), list(&[0, 0])], &[2, 3]).unwrap(),
        [3, 4, 5, 0, 1, 2]
    );
    let row = counting(&[1, 3]);
    let reflect = |pads: &[i64], size| ints("aten::reflection_pad1d.out", &[row.clone(), list(pads)], &[1, size]);
    assert_eq!(reflect(&[2, 1], 6).unwrap(), [2, 1, 0, 1, 2, 1]);
    assert!(reflect(&[3, 0], 6).is_err() && reflect(&[-3, 0], 0).is_err());
    let repeat = [row, list(&[1, 2])];
    assert_eq!(ints("aten::replication_pad1d.out", &repeat, &[1, 6]).unwrap(), [0, 0, 1, 2, 2, 2]);
    let tril = |diagonal| ints("aten::tril.out", &[counting(&[2, 3]), Arg::int(diagonal)], &[2, 3]).unwrap();
    assert_eq!(tril(0), [0, 0, 0, 3, 4, 0]);
    assert_eq!(tril(1), [0, 1, 0, 3, 4, 5]);
    assert_eq!(tril(i64::MIN), [0; 6]);
}

#[test]
fn masks_filter() {
    let dynamic = |dtype, sizes: &[usize]| Arg::Tensor(OwnedTensor::zeros(dtype, sizes).dynamic());
    let mask = Arg::tensor(&[3], &[Bool(1), Bool(0), Bool(4)]);
    let args = [counting(&[2, 3]), mask.clone(), dynamic(ScalarType::INT, &[6])];
    assert_eq!(outs("aten::masked_select.out", &args).unwrap()[0].as_slice::<i32>().unwrap(), [0, 2, 3, 5]);
    let source = Arg::tensor(&[4], &[10i32, 20, 30, 40]);
    let args = [counting(&[2, 3]), mask.clone(), source];
    assert_eq!(ints("aten::masked_scatter.out", &args, &[2, 3]).unwrap(), [10, 1, 20, 30, 4, 40]);
    let args = [counting(&[2, 3]), mask, Arg::tensor(&[1], &[10i32])];
    assert!(ints("aten::masked_scatter.out", &args, &[2, 3]).is_err());
    let args = [counting(&[2, 2]), dynamic(ScalarType::LONG, &[4, 2])];
    let places = &outs("aten::nonzero.out", &args).unwrap()[0];
    assert_eq!((places.layout().sizes(), places.as_slice::<i64>().unwrap()), (&[3, 2][..], vec![0, 1, 1, 0, 1, 1]));
    let args = [Arg::tensor(&[3], &[2i64, 0, 1]), Arg::None, dynamic(ScalarType::LONG, &[9])];
    assert_eq!(outs("aten::repeat_interleave.Tensor_out", &args).unwrap()[0].as_slice::<i64>().unwrap(), [0, 0, 2]);
}

#[test]
fn nothing_is_padded_to_enormous_sizes() {
    let x = Arg::out(ScalarType::INT, &[0, 2, 8]);
    let padded = |before: i64| {
        let out = Arg::Tensor(OwnedTensor::zeros(ScalarType::INT, &[0, 2, 8]).dynamic());
        outs("aten::constant_pad_nd.out", &[x.clone(), list(&[0, 0, before, 0]), Arg::int(7), out])
    };
    // Strides of 8 elements of 4 bytes: at 2^58 places they end.
    assert_eq!(padded(1 << 50).unwrap()[0].layout().sizes(), [0, (1 << 50) + 2, 8]);
    for before in [1 << 58, 1 << 61, 1 << 62, i64::MAX] {
        assert!(padded(before).is_err(), "{before}");
    }
}
