//! Linear layers, products of matrices of any rank, convolutions.

use super::maker::Maker;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, Size, ValueId};

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "linear" => |make, node| {
            let bias = node.arg("bias").value();
            one(linear(make, node.value("input")?, node.value("weight")?, bias)?)
        },
        "matmul" | "linalg_matmul" => |make, node| one(matmul(make, node.value("self")?, node.value("other")?)?),
        "mv" => |make, node| one(matmul(make, node.value("self")?, node.value("vec")?)?),
        "dot" => |make, node| {
            let product = make.binary("mul.Tensor", node.value("self")?, node.value("tensor")?)?;
            one(make.sum(product, &[0], false)?)
        },
        "outer" | "ger" => |make, node| {
            let column = make.unsqueeze(node.value("self")?, 1)?;
            one(make.binary("mul.Tensor", column, node.value("vec2")?)?)
        },
        "inner" => |make, node| {
            let other = node.value("other")?;
            if make.rank(other)? == 0 || make.rank(node.value("self")?)? == 0 {
                return one(make.binary("mul.Tensor", node.value("self")?, other)?);
            }
            let turned = if make.rank(other)? > 1 { make.transpose(other, -1, -2)? } else { other };
            one(matmul(make, node.value("self")?, turned)?)
        },
        "baddbmm" => |make, node| {
            let product = make.call("bmm", [("self", node.arg("batch1")), ("mat2", node.arg("batch2"))])?;
            let product = scaled(make, product, node, "alpha")?;
            let input = scaled(make, node.value("self")?, node, "beta")?;
            one(make.binary("add.Tensor", product, input)?)
        },
        "addmv" => |make, node| {
            let product = matmul(make, node.value("mat")?, node.value("vec")?)?;
            let product = scaled(make, product, node, "alpha")?;
            let input = scaled(make, node.value("self")?, node, "beta")?;
            one(make.binary("add.Tensor", product, input)?)
        },
        "bilinear" => bilinear,
        "_trilinear" => trilinear,
        "tensordot" => tensordot,
        "einsum" => einsum,
        "conv1d" => |make, node| convolution(make, node, 1, false),
        "conv2d" => |make, node| convolution(make, node, 2, false),
        "conv3d" => |make, node| convolution(make, node, 3, false),
        "conv1d.padding" => |make, node| convolution(make, node, 1, false),
        "conv2d.padding" => |make, node| convolution(make, node, 2, false),
        "conv3d.padding" => |make, node| convolution(make, node, 3, false),
        "conv_transpose1d" => |make, node| convolution(make, node, 1, true),
        "conv_transpose2d.input" => |make, node| convolution(make, node, 2, true),
        "conv_transpose3d.input" => |make, node| convolution(make, node, 3, true),
        "_convolution" | "_convolution.deprecated" => |make, node| {
            let args =
                ["input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups"];
            one(make.call("convolution", args.map(|name| (name, node.arg(name))))?)
        },
        _ => return None,
    })
}

fn scaled(make: &mut Maker<'_>, value: ValueId, node: &Composite<'_>, factor: &str) -> Result<ValueId, Error> {
    match node.number(factor) {
        Some(1.0) | None => Ok(value),
        Some(_) => make.binary("mul.Tensor", value, node.arg(factor)),
    }
}

/// Writes a linear layer: the weight is transposed, outer dimensions become one.
pub(super) fn linear(
    make: &mut Maker<'_>,
    input: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
) -> Result<ValueId, Error> {
    if make.rank(weight)? == 1 {
        let product = matmul(make, input, weight)?;
        return match bias {
            Some(bias) => make.binary("add.Tensor", product, bias),
            None => Ok(product),
        };
    }
    let turned = make.permute(weight, &[1, 0])?;
    let mut sizes = make.sizes(input)?;
    let flat = sizes.len() == 2;
    let inner = sizes.pop().ok_or_else(|| make.error("linear of a number"))?;
    let rows = Size::product(&sizes);
    let matrix = if flat { input } else { make.view(input, &[rows, inner])? };
    let product = match bias {
        Some(bias) => {
            let args = [("self", bias.into()), ("mat1", matrix.into()), ("mat2", turned.into())];
            make.call("addmm", args)?
        }
        None => make.call("mm", [("self", matrix.into()), ("mat2", turned.into())])?,
    };
    if flat {
        return Ok(product);
    }
    sizes.push(make.size(product, -1)?);
    make.view(product, &sizes)
}

/// The product of tensors of any rank.
pub(super) fn matmul(make: &mut Maker<'_>, a: ValueId, b: ValueId) -> Result<ValueId, Error> {
    match (make.rank(a)?, make.rank(b)?) {
        (2, 2) => make.call("mm", [("self", a.into()), ("mat2", b.into())]),
        (1, 1) => {
            let product = make.binary("mul.Tensor", a, b)?;
            make.sum(product, &[0], false)
        }
        (1, _) => {
            let row = make.unsqueeze(a, 0)?;
            let product = matmul(make, row, b)?;
            make.squeeze(product, &[-2])
        }
        (_, 1) => {
            let column = make.unsqueeze(b, 1)?;
            let product = matmul(make, a, column)?;
            make.squeeze(product, &[-1])
        }
        (_, 2) => {
            let mut sizes = make.sizes(a)?;
            let inner = sizes.pop().ok_or_else(|| make.error("a product of a number"))?;
            let matrix = make.view(a, &[Size::product(&sizes), inner])?;
            let product = make.call("mm", [("self", matrix.into()), ("mat2", b.into())])?;
            sizes.push(make.size(product, -1)?);
            make.view(product, &sizes)
        }
        _ => batched(make, a, b),
    }
}

fn batched(make: &mut Maker<'_>, a: ValueId, b: ValueId) -> Result<ValueId, Error> {
    let (sizes_a, sizes_b) = (make.sizes(a)?, make.sizes(b)?);
    let outer = |sizes: &[Size]| sizes.get(..sizes.len().saturating_sub(2)).unwrap_or_default().to_vec();
    let (outer_a, outer_b) = (outer(&sizes_a), outer(&sizes_b));
    let mut batch = Vec::new();
    for at in 0..outer_a.len().max(outer_b.len()) {
        let from_end = |sizes: &[Size]| {
            let longest = outer_a.len().max(outer_b.len());
            at.checked_sub(longest.saturating_sub(sizes.len())).and_then(|at| sizes.get(at).cloned())
        };
        batch.push(match (from_end(&outer_a), from_end(&outer_b)) {
            (Some(a), Some(b)) => {
                if a.known() == Some(1) {
                    b
                } else {
                    a
                }
            }
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Size::Known(1),
        });
    }
    let (rows, inner) = (make.size(a, -2)?, make.size(a, -1)?);
    let columns = make.size(b, -1)?;
    let count = Size::product(&batch);
    let all = |last: [&Size; 2]| batch.iter().chain(last).cloned().collect::<Vec<_>>();
    let a = make.expand(a, &all([&rows, &inner]))?;
    let a = make.view(a, &[count.clone(), rows.clone(), inner.clone()])?;
    let b = make.expand(b, &all([&inner, &columns]))?;
    let b = make.view(b, &[count, inner.clone(), columns.clone()])?;
    let product = make.call("bmm", [("self", a.into()), ("mat2", b.into())])?;
    make.view(product, &all([&rows, &columns]))
}

fn bilinear(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    // out[b, o] = sum over i and j of a[b, i] * w[o, i, j] * c[b, j]
    let (a, c, weight) = (node.value("input1")?, node.value("input2")?, node.value("weight")?);
    let result = node.node.result().ok_or_else(|| make.error("it gives nothing"))?;
    let wanted = make.sizes(result)?;
    let (left, right) = (make.size(a, -1)?, make.size(c, -1)?);
    let batch = Size::product(wanted.iter().take(wanted.len().saturating_sub(1)));
    let (a, c) = (make.view(a, &[batch.clone(), left.clone()])?, make.view(c, &[batch.clone(), right.clone()])?);
    let outs = make.size(weight, 0)?;
    let turned = make.permute(weight, &[1, 0, 2])?;
    let turned = make.view(turned, &[left, outs.times(&right)])?;
    let first = matmul(make, a, turned)?;
    let first = make.view(first, &[batch.clone(), outs.clone(), right.clone()])?;
    let column = make.unsqueeze(c, 2)?;
    let product = matmul(make, first, column)?;
    let mut result = make.view(product, &[batch, outs])?;
    if let Some(bias) = node.arg("bias").value() {
        result = make.binary("add.Tensor", result, bias)?;
    }
    one(make.view(result, &wanted)?)
}

/// The product of three, each with dimensions more, summed over some.
fn trilinear(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let mut product: Option<ValueId> = None;
    for (name, raised) in [("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")] {
        let mut value = node.value(name)?;
        let mut dims = node.ints(raised)?;
        dims.sort_unstable();
        for dim in dims {
            value = make.unsqueeze(value, dim)?;
        }
        product = Some(match product {
            Some(product) => make.binary("mul.Tensor", product, value)?,
            None => value,
        });
    }
    let product = product.ok_or_else(|| make.error("a product of nothing"))?;
    one(make.sum(product, &node.ints("sumdim")?, false)?)
}

/// A product of matrices of the dimensions that are summed over and those that are not.
fn tensordot(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let (mut a, mut b) = (node.value("self")?, node.value("other")?);
    // Where one side has one element only, the other is summed up first.
    for (left, right) in node.ints("dims_self")?.into_iter().zip(node.ints("dims_other")?) {
        match (make.size(a, left)?.known(), make.size(b, right)?.known()) {
            (Some(1), Some(1)) => {}
            (Some(1), _) => b = make.sum(b, &[right], true)?,
            (_, Some(1)) => a = make.sum(a, &[left], true)?,
            _ => {}
        }
    }
    let mut sides = Vec::new();
    let mut outer = Vec::new();
    for (value, name, inner_first) in [(a, "dims_self", false), (b, "dims_other", true)] {
        let sizes = make.sizes(value)?;
        let mut inner = Vec::new();
        for dim in node.ints(name)? {
            inner.push(make.dim(dim, sizes.len())?);
        }
        let rest: Vec<usize> = (0..sizes.len()).filter(|dim| !inner.contains(dim)).collect();
        let pick = |dims: &[usize]| dims.iter().filter_map(|dim| sizes.get(*dim).cloned()).collect::<Vec<_>>();
        let (groups, flat) = match inner_first {
            true => ([inner.clone(), rest.clone()], [pick(&inner), pick(&rest)]),
            false => ([rest.clone(), inner.clone()], [pick(&rest), pick(&inner)]),
        };
        let order: Vec<i64> = groups.concat().into_iter().filter_map(|dim| i64::try_from(dim).ok()).collect();
        let turned = make.permute(value, &order)?;
        sides.push(make.view(turned, &flat.map(|sizes| Size::product(&sizes)))?);
        outer.extend(pick(&rest));
    }
    let [left, right] = sides.as_slice() else { return Ok(None) };
    let product = make.call("mm", [("self", (*left).into()), ("mat2", (*right).into())])?;
    one(make.view(product, &outer)?)
}

/// Returns one number per dimension; a single number applies to all.
fn each(node: &Composite<'_>, name: &str, dims: usize, default: i64) -> Result<Vec<i64>, Error> {
    if !node.has(name) {
        return Ok(vec![default; dims]);
    }
    let numbers = node.ints(name)?;
    Ok(match numbers.as_slice() {
        [] => vec![default; dims],
        [one] => vec![*one; dims],
        all => all.to_vec(),
    })
}

fn convolution(make: &mut Maker<'_>, node: &Composite<'_>, dims: usize, transposed: bool) -> Answer {
    let (mut input, weight) = (node.value("input")?, node.value("weight")?);
    let dilation = each(node, "dilation", dims, 1)?;
    let mut padding = vec![0; dims];
    match node.text("padding").as_deref() {
        Some("same") => {
            let mut uneven = Vec::new();
            for dim in 0..dims {
                let at = i64::try_from(dim.saturating_add(2)).unwrap_or(0);
                let kernel = make.known_size(weight, at)?;
                let total = kernel.saturating_sub(1).saturating_mul(dilation.get(dim).copied().unwrap_or(1));
                if let Some(padding) = padding.get_mut(dim) {
                    *padding = total.checked_div(2).unwrap_or(0);
                }
                uneven.push(total.checked_rem(2).unwrap_or(0));
            }
            // What cannot be halved goes behind.
            if uneven.iter().any(|extra| *extra > 0) {
                let pads = uneven.iter().rev().flat_map(|extra| [0, *extra]);
                let args = [("self", input.into()), ("pad", Argument::ints(pads)), ("value", Argument::Int(0))];
                input = make.call("constant_pad_nd", args)?;
            }
        }
        Some("valid") => {}
        Some(_) => return Err(node.wrong("padding")),
        None => padding = each(node, "padding", dims, 0)?,
    }
    let batched = make.rank(input)? == dims.saturating_add(2);
    if !batched {
        input = make.unsqueeze(input, 0)?;
    }
    let stride = each(node, "stride", dims, 1)?;
    let extra = if transposed { each(node, "output_padding", dims, 0)? } else { vec![0; dims] };
    let result = make.call(
        "convolution",
        [
            ("input", input.into()),
            ("weight", weight.into()),
            ("bias", node.arg("bias")),
            ("stride", Argument::ints(stride)),
            ("padding", Argument::ints(padding)),
            ("dilation", Argument::ints(dilation)),
            ("transposed", transposed.into()),
            ("output_padding", Argument::ints(extra)),
            ("groups", node.int("groups")?.into()),
        ],
    )?;
    one(if batched { result } else { make.squeeze(result, &[0])? })
}

/// Sums of products as letters say: two operands become one product of matrices, more are taken one after the other.
fn einsum(make: &mut Maker<'_>, node: &Composite<'_>) -> Answer {
    let equation: String = node.text("equation").unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    let operands: Vec<ValueId> = node.arg("tensors").items().iter().filter_map(Argument::value).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left.to_owned(), right.to_owned()),
        None => {
            // Letters that occur once, in order.
            let mut letters: Vec<char> = equation.chars().filter(|c| c.is_alphabetic()).collect();
            letters.sort_unstable();
            let once = letters.iter().filter(|c| letters.iter().filter(|other| other == c).count() == 1).collect();
            (equation.clone(), once)
        }
    };
    let terms: Vec<&str> = left.split(',').collect();
    let (terms, result, operands) = super::einsum::plain(make, &terms, (&right, equation.contains("->")), operands)?;
    let plain = terms.iter().chain([&result]).all(|term| {
        term.iter().enumerate().all(|(at, c)| c.is_alphabetic() && !term.iter().take(at).any(|other| other == c))
    });
    if !plain || terms.len() != operands.len() {
        return Err(node.wrong("equation"));
    }
    let mut rest = terms.into_iter().zip(operands);
    let Some((mut letters, mut value)) = rest.next() else { return Ok(None) };
    let others: Vec<(Vec<char>, ValueId)> = rest.collect();
    for (at, (next_letters, next)) in others.iter().enumerate() {
        let later = |c: &char| {
            result.contains(c) || others.iter().skip(at.saturating_add(1)).any(|(letters, _)| letters.contains(c))
        };
        (letters, value) = contract(make, (letters, value), (next_letters.clone(), *next), later)?;
    }
    let gone: Vec<i64> = (0i64..).zip(&letters).filter(|(_, c)| !result.contains(c)).map(|(dim, _)| dim).collect();
    if !gone.is_empty() {
        value = make.sum(value, &gone, false)?;
        letters.retain(|c| result.contains(c));
    }
    let place = |c: &char| letters.iter().position(|known| known == c).and_then(|at| i64::try_from(at).ok());
    let dims: Option<Vec<i64>> = result.iter().map(place).collect();
    let dims = dims.ok_or_else(|| node.wrong("equation"))?;
    one(make.permute(value, &dims)?)
}

type Term = (Vec<char>, ValueId);

/// Multiplies two terms and sums over the letters that no later term needs.
fn contract(make: &mut Maker<'_>, a: Term, b: Term, later: impl Fn(&char) -> bool) -> Result<Term, Error> {
    let ((letters_a, a), (letters_b, b)) = (a, b);
    let both = |c: &&char| letters_a.contains(c) && letters_b.contains(c);
    let batch: Vec<char> = letters_a.iter().filter(both).filter(|c| later(c)).copied().collect();
    let inner: Vec<char> = letters_a.iter().filter(both).filter(|c| !later(c)).copied().collect();
    let only = |letters: &[char], other: &[char]| -> Vec<char> {
        letters.iter().filter(|c| !other.contains(c)).copied().collect()
    };
    let (rows, columns) = (only(&letters_a, &letters_b), only(&letters_b, &letters_a));
    let mut sizes: Vec<(char, Size)> = Vec::new();
    for (letters, value) in [(&letters_a, a), (&letters_b, b)] {
        for (letter, size) in letters.iter().zip(make.sizes(value)?) {
            sizes.push((*letter, size));
        }
    }
    let size = |letter: &char| sizes.iter().find(|(known, _)| known == letter).map(|(_, size)| size.clone());
    let product = |letters: &[char]| letters.iter().filter_map(size).fold(Size::Known(1), |all, size| all.times(&size));
    let mut arrange = |value: ValueId, letters: &[char], groups: [&[char]; 3]| -> Result<ValueId, Error> {
        let order = groups.iter().flat_map(|group| group.iter());
        let dims: Vec<i64> = order
            .filter_map(|c| letters.iter().position(|known| known == c).and_then(|at| i64::try_from(at).ok()))
            .collect();
        let turned = make.permute(value, &dims)?;
        make.view(turned, &groups.map(product))
    };
    let left = arrange(a, &letters_a, [&batch, &rows, &inner])?;
    let right = arrange(b, &letters_b, [&batch, &inner, &columns])?;
    let result = make.call("bmm", [("self", left.into()), ("mat2", right.into())])?;
    let letters: Vec<char> = batch.iter().chain(&rows).chain(&columns).copied().collect();
    let sizes: Vec<Size> = letters.iter().filter_map(size).collect();
    Ok((letters, make.view(result, &sizes)?))
}
