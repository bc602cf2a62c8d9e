//! Images between convolutions are stored with their channels innermost.
//!
//! Programs are exported with channels-first images unless their author asked for another order. A convolution is
//! faster where the channels of a pixel are stored together. Only the order of values changes that no caller sees and
//! that are written and read by operators for which the order makes no difference; which of them must share an order is
//! found by joining them in groups. Delegates have channels innermost under other names, and permute images between one
//! and the other: a group between such permutations is stored so that they move nothing. Where an output alone keeps a group
//! in its order, it is copied.

mod outputs;

use edgepack_executor::kernel::Kernel;
use edgepack_executor::plan::{PlanGraph, PlanInstructionKind, Rewrite};
use edgepack_executor::rewrite::Uses;
use edgepack_executor::state::{Dynamism, NONE, Value, ValueId};
use edgepack_format::scalar::ScalarType;

use super::chain::{collected, dim, is, shuffle_of, tensor};
use super::copies;
use super::permutation::Permutation;
use crate::aten::conv;
use crate::aten::elementwise::arithmetic;
use crate::aten::movement::copy::REORDERED;
use crate::aten::movement::shuffle;
use crate::aten::pool::{MAX_2D_ALONE, MAX_2D_OUT};
use crate::fused::{Base, POINTWISE};
use crate::prelu::{self, PRELU};
use crate::schema::position;

/// Lays images out with their channels innermost where that pays.
pub struct ChannelsLast;

/// The order with the channels innermost, of images that have them outermost: of one and of two dimensions.
fn last(order: &[u8]) -> Option<&'static [u8]> {
    match order {
        [0, 1, 2] => Some(&[0, 2, 1]),
        [0, 1, 2, 3] => Some(&[0, 2, 3, 1]),
        _ => None,
    }
}

/// An operator and the positions of its image arguments.
macro_rules! images {
    ($($name:literal: $($argument:literal)*;)*) => { &[$(($name, &[$(position($name, $argument)),*])),*] };
}

/// Operators whose image arguments must all have one order, whichever it is.
const SAME_ORDER: &[(&str, &[usize])] = images! {
    "aten::relu.out": "self" "out";
    "aten::hardtanh.out": "self" "out";
    "aten::clamp.out": "self" "out";
    "aten::sigmoid.out": "self" "out";
    "aten::gelu.out": "self" "out";
    "aten::leaky_relu.out": "self" "out";
    "aten::tanh.out": "self" "out";
    "aten::exp.out": "self" "out";
    "aten::add.out": "self" "other" "out";
    "aten::sub.out": "self" "other" "out";
    "aten::mul.out": "self" "other" "out";
    "aten::div.out": "self" "other" "out";
    "aten::_native_batch_norm_legit_no_training.out": "input" "out0";
    "aten::native_group_norm.out": "input" "out0";
    "aten::avg_pool2d.out": "self" "out";
    "aten::constant_pad_nd.out": "self" "out";
    "quantized_decomposed::quantize_per_tensor.out": "input" "out";
    "quantized_decomposed::dequantize_per_tensor.out": "input" "out";
};

/// Operators of [`SAME_ORDER`] whose result has other sizes than the image.
const RESIZED: &[&str] = &["aten::avg_pool2d.out", "aten::constant_pad_nd.out"];

/// Operators like those of [`SAME_ORDER`] that rewrites made.
static OWN_SAME_ORDER: &[(&Kernel, &[usize])] = &[(&MAX_2D_ALONE, &[0, MAX_2D_OUT]), (&PRELU, &[0, prelu::OUT])];

/// Operators of [`SAME_ORDER`] that are fused with operations, and the positions of their operands.
static SAME_ORDER_FUSED: &[(&Base, &[usize])] =
    &[(&POINTWISE, &[0]), (&arithmetic::FUSED_ADD, &[0, 1]), (&arithmetic::FUSED_MUL, &[0, 1]), (&prelu::FUSED, &[0])];

/// Operators that take a part of an image, or take it apart: the positions of the image, of the dimension and of the parts.
const PARTS: &[(&str, &[usize])] = images! {
    "aten::slice_copy.Tensor_out": "self" "dim" "out";
    "aten::split_copy.Tensor_out": "self" "dim" "out";
    "aten::split_with_sizes_copy.out": "self" "dim" "out";
};

/// Channels that loops compute at once.
const LANES: usize = 16;

/// Operators that read an image in any order.
const READS_ANY_ORDER: &[&str] = &["aten::mean.out", "aten::select_copy.int_out", REORDERED.name];

/// Operators that read and write images in any order, of which each may have its own.
const ANY_ORDER: &[&str] = &[
    "aten::upsample_bilinear2d.vec_out",
    "aten::upsample_nearest2d.vec_out",
    "aten::permute_copy.out",
    "aten::transpose_copy.int_out",
];

const TENSORS: usize = position("aten::cat.out", "tensors");
const JOINED: usize = position("aten::cat.out", "out");

impl Rewrite for ChannelsLast {
    fn name(&self) -> &'static str {
        "channels last"
    }

    fn apply(&self, graph: &mut PlanGraph<'_>) -> usize {
        let Some(mut groups) = Groups::of(graph) else { return 0 };
        if outputs::copy(graph, &mut groups) > 0 {
            match Groups::of(graph) {
                Some(anew) => groups = anew,
                None => return 0,
            }
        }
        let mut changed = 0;
        for tensor in 0..graph.tensor_count() as u32 {
            if let Some(last) = groups.reordered(graph, tensor) {
                changed += usize::from(graph.reorder(tensor, last));
            }
        }
        changed
    }
}

/// Returns whether an operator of [`PARTS`] divides the channels of an image, or cuts a part out of it.
fn cuts(graph: &PlanGraph<'_>, name: &str, along: ValueId, image: ValueId) -> bool {
    let along = tensor(graph, image).and_then(|image| dim(graph, along, graph.tensor(image).bounds().len()));
    along == Some(1) || along.is_some_and(|dim| dim > 1 && name == PARTS[0].0)
}

/// Returns whether two tensors have the same images, whose pixels may be in lines or in one, so that they are the same bytes if
/// both have one order.
fn same_images(graph: &PlanGraph<'_>, a: u32, b: u32) -> bool {
    let (a, b) = (graph.tensor(a), graph.tensor(b));
    let pixels = |sizes: &[usize]| sizes[2..].iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    let both = [a, b].iter().all(|image| last(image.dim_order()).is_some());
    both && a.dtype() == b.dtype() && a.bounds()[..2] == b.bounds()[..2] && pixels(a.bounds()) == pixels(b.bounds())
}

/// Tensors that share an order, as trees.
struct Groups {
    parent: Vec<u32>,
    /// True, by root, if a member retains its order.
    fixed: Vec<bool>,
    /// True, by root, if a member retains its order, and not because it is an output.
    held: Vec<bool>,
    /// True, by root, if a member is the result of a convolution.
    pays: Vec<bool>,
    /// Number of operands and results of convolutions that the members are, by root.
    convolved: Vec<usize>,
    /// True, by root, if the channels of all members become innermost: what [`Groups::choose`] decides.
    innermost: Vec<bool>,
    permutations: Vec<Permutation>,
    /// Inputs and outputs of pooling that writes either order where it reads channels-last images.
    pools: Vec<[u32; 2]>,
}

impl Groups {
    /// Finds out which tensors share an order and which groups have their channels innermost; `None` if nothing can be found.
    fn of(graph: &PlanGraph<'_>) -> Option<Self> {
        let uses = Uses::of(graph)?;
        let mut groups = Groups::new(graph, &uses)?;
        for instruction in graph.chains().iter().flatten() {
            groups.visit(graph, &instruction.kind);
        }
        groups.join_pools();
        groups.choose(graph);
        Some(groups)
    }

    fn new(graph: &PlanGraph<'_>, uses: &Uses) -> Option<Self> {
        let count = graph.tensor_count();
        let is_image = |index: u32| {
            let tensor = graph.tensor(index);
            [ScalarType::FLOAT, ScalarType::CHAR, ScalarType::BYTE].contains(&tensor.dtype())
                && tensor.dynamism() == Dynamism::Static
                && last(tensor.dim_order()).is_some()
        };
        let fixed = (0..).map(|index| {
            let how = uses.of_tensor(index);
            let movable = how.writes == u32::from(how.view_of.is_none()) && !how.pinned;
            !movable || !is_image(index)
        });
        // Pixels of one channel, and single ones, are in either order.
        let is_turned = |index: u32| graph.tensor(index).bounds()[1..].iter().filter(|&&size| size != 1).count() > 1;
        let is_output = |index: u32| is_image(index) && is_turned(index) && uses.of_tensor(index).is_only_output();
        let mut groups = Groups {
            parent: collected(count, 0..)?,
            fixed: collected(count, fixed.clone())?,
            held: collected(count, fixed.zip(0..).map(|(fixed, index)| fixed && !is_output(index)))?,
            convolved: collected(count, std::iter::repeat(0))?,
            pays: collected(count, std::iter::repeat(false))?,
            innermost: collected(count, std::iter::repeat(false))?,
            permutations: Vec::new(),
            pools: Vec::new(),
        };
        for (view, base) in uses.views() {
            if same_images(graph, view, base) {
                groups.join(base, view);
            } else {
                groups.fix(base);
                groups.fix(view);
            }
        }
        Some(groups)
    }

    fn root(&mut self, mut tensor: u32) -> u32 {
        while self.parent[tensor as usize] != tensor {
            let above = self.parent[self.parent[tensor as usize] as usize];
            self.parent[tensor as usize] = above;
            tensor = above;
        }
        tensor
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[b as usize] = a;
        if a != b {
            self.convolved[a as usize] += self.convolved[b as usize];
        }
        for flags in [&mut self.fixed, &mut self.held, &mut self.pays] {
            flags[a as usize] |= flags[b as usize];
        }
    }

    /// Decides which groups have their channels innermost: those of convolutions, then those with which more permutations move
    /// nothing, one after the other.
    fn choose(&mut self, graph: &PlanGraph<'_>) {
        for (innermost, (pays, fixed)) in self.innermost.iter_mut().zip(self.pays.iter().zip(&self.fixed)) {
            *innermost = *pays && !fixed;
        }
        for (root, permutations) in self.permuted(graph) {
            let is_free = !self.fixed[root as usize] && !self.innermost[root as usize];
            self.innermost[root as usize] |= is_free && self.spares(graph, root, &permutations) > 0;
        }
    }

    /// The groups that are permuted, in order, and the permutations of each.
    fn permuted(&mut self, graph: &PlanGraph<'_>) -> Vec<(u32, Vec<usize>)> {
        let mut of_roots: Vec<(u32, usize)> = Vec::new();
        for index in 0..self.permutations.len() {
            let permutation = &self.permutations[index];
            for tensor in [permutation.from, permutation.to].into_iter().filter_map(|id| tensor(graph, id)) {
                of_roots.push((self.root(tensor), index));
            }
        }
        of_roots.sort_unstable();
        of_roots.dedup();
        let groups = of_roots.chunk_by(|a, b| a.0 == b.0);
        groups.map(|group| (group[0].0, group.iter().map(|(_, index)| *index).collect())).collect()
    }

    /// Permutations of a group that move nothing only if the channels of the group become innermost.
    fn spares(&mut self, graph: &PlanGraph<'_>, root: u32, permutations: &[usize]) -> usize {
        let before = self.innermost[root as usize];
        let [without, with] = [before, true].map(|innermost| {
            self.innermost[root as usize] = innermost;
            permutations.iter().filter(|index| self.moves_nothing(graph, **index)).count()
        });
        self.innermost[root as usize] = before;
        with.saturating_sub(without)
    }

    /// The order that a tensor is given, if its channels are to become innermost.
    fn reordered(&mut self, graph: &PlanGraph<'_>, tensor: u32) -> Option<&'static [u8]> {
        let root = self.root(tensor) as usize;
        last(graph.tensor(tensor).dim_order()).filter(|_| self.innermost[root])
    }

    fn moves_nothing(&mut self, graph: &PlanGraph<'_>, permutation: usize) -> bool {
        let Permutation { from, to, .. } = self.permutations[permutation];
        let [from, to] = [from, to].map(|id| tensor(graph, id));
        let (Some(from), Some(to)) = (from, to) else { return false };
        let [from, to] =
            [from, to].map(|tensor| self.reordered(graph, tensor).unwrap_or_else(|| graph.tensor(tensor).dim_order()));
        self.permutations[permutation].moves_nothing(graph, from, to)
    }

    /// Joins the input and the output of pooling, but where the order of the output alone is fixed: as it is, it is written
    /// from an input of another order.
    fn join_pools(&mut self) {
        for [input, out] in std::mem::take(&mut self.pools) {
            let root = self.root(out);
            if !self.fixed[root as usize] {
                self.join(out, input);
            }
        }
    }

    fn fix(&mut self, tensor: u32) {
        let root = self.root(tensor) as usize;
        (self.fixed[root], self.held[root]) = (true, true);
    }

    fn visit(&mut self, graph: &PlanGraph<'_>, kind: &PlanInstructionKind) {
        match *kind {
            PlanInstructionKind::Kernel { operator, args } => self.call(graph, operator, graph.args(args)),
            PlanInstructionKind::Move { from, to } => self.fix_all(graph, &[from, to]),
            // Delegates pin what they use; nothing else has tensors.
            _ => {}
        }
    }

    fn call(&mut self, graph: &PlanGraph<'_>, operator: u32, ids: &[ValueId]) {
        let name = &*graph.operators()[operator as usize].name;
        if is(graph, operator, &conv::CONVOLUTION) || name == conv::FUSED.name {
            return self.convolution(graph, ids, conv::OUT);
        }
        if is(graph, operator, &conv::SCALED) || name == conv::SCALED_FUSED.name {
            return self.convolution(graph, ids, conv::SCALED_OUT);
        }
        if READS_ANY_ORDER.contains(&name) {
            return self.fix_all(graph, &ids[1..]);
        }
        if ANY_ORDER.contains(&name) {
            return self.permutations.extend(Permutation::of(graph, name, ids));
        }
        if graph.operators()[operator as usize].kernel.is_elementwise() {
            return self.elementwise(graph, ids);
        }
        if let Some([from, out]) = copies::viewed(graph, name, ids) {
            return match (tensor(graph, from), tensor(graph, out)) {
                (Some(from), Some(out)) if same_images(graph, from, out) => self.join(from, out),
                _ => self.fix_all(graph, ids),
            };
        }
        if name == "aten::cat.out" {
            let (Some(&list), Some(&out)) = (ids.get(TENSORS), ids.get(JOINED)) else {
                return self.fix_all(graph, ids);
            };
            return self.same(graph, out, &[list]);
        }
        if let Some(&(_, &[image, dim, parts])) = PARTS.iter().find(|(part, _)| *part == name) {
            return match (ids.get(image), ids.get(dim), ids.get(parts)) {
                // Who takes pixels apart does not ask for channels next to each other; who cuts an end off may.
                (Some(&image), Some(&along), Some(&parts)) if cuts(graph, name, along, image) => {
                    self.same(graph, image, &[parts]);
                }
                _ => self.fix_all(graph, ids),
            };
        }
        if shuffle_of(graph, operator).is_some() {
            return self.shuffle(graph, ids);
        }
        let own = || OWN_SAME_ORDER.iter().find(|(kernel, _)| kernel.name == name).map(|(_, images)| (*images, None));
        let plain = SAME_ORDER.iter().find(|(same, _)| *same == name).map(|(_, images)| (*images, None)).or_else(own);
        let fused = || SAME_ORDER_FUSED.iter().find(|(base, _)| base.name == name);
        let Some((images, out)) = plain.or_else(|| fused().map(|(base, operands)| (*operands, Some(base.out)))) else {
            return self.fix_all(graph, ids);
        };
        let images = images.iter().copied().chain(out);
        let tensors: Option<Vec<u32>> = images.map(|at| ids.get(at).and_then(|&id| tensor(graph, id))).collect();
        let Some(tensors) = tensors else { return self.fix_all(graph, ids) };
        let sizes = |tensor: u32| graph.tensor(tensor).bounds();
        let resized = name == MAX_2D_ALONE.name || RESIZED.contains(&name);
        // Operands that are stretched are read element by element, in whatever order they are.
        let Some((&result, operands)) = tensors.split_last() else { return };
        // Factors are no images, whatever their sizes are.
        for &id in ids.iter().filter(|&&id| tensor(graph, id).is_some_and(|other| !tensors.contains(&other))) {
            self.fix_all(graph, &[id]);
        }
        if name == MAX_2D_ALONE.name {
            return self.pools.extend(operands.iter().map(|&input| [input, result]));
        }
        for &operand in operands {
            if resized || sizes(operand) == sizes(result) {
                self.join(result, operand);
            } else if sizes(operand).iter().filter(|&&size| size != 1).count() > 1 {
                return self.fix_all(graph, ids);
            }
        }
    }

    /// An image, and others or lists of them, that all have one order.
    fn same(&mut self, graph: &PlanGraph<'_>, image: ValueId, others: &[ValueId]) {
        let Some(image) = tensor(graph, image) else { return self.fix_all(graph, others) };
        let rank = graph.tensor(image).bounds().len();
        for other in others {
            let items = match graph.value(*other) {
                Value::TensorList(span) => graph.items(span),
                _ => std::slice::from_ref(other),
            };
            for &item in items {
                match tensor(graph, item).filter(|&item| graph.tensor(item).bounds().len() == rank) {
                    Some(item) => self.join(image, item),
                    None => {
                        self.fix(image);
                        return self.fix_all(graph, others);
                    }
                }
            }
        }
    }

    /// A shuffle of channels: all images have one order.
    fn shuffle(&mut self, graph: &PlanGraph<'_>, ids: &[ValueId]) {
        let (Some(&inputs), Some(&outs)) = (ids.get(shuffle::TENSORS), ids.get(shuffle::OUT)) else { return };
        let Value::TensorList(span) = graph.value(inputs) else { return };
        let Some(&first) = graph.items(span).first() else { return };
        self.same(graph, first, &[inputs, outs]);
    }

    /// An operator that goes from element to element, if all tensors have the same sizes, or one element, which meets those of
    /// every order.
    fn elementwise(&mut self, graph: &PlanGraph<'_>, ids: &[ValueId]) {
        let tensors: Option<Vec<u32>> = ids.iter().map(|&id| tensor(graph, id)).collect();
        let sizes = |tensor: u32| graph.tensor(tensor).bounds();
        let is_one = |tensor: &u32| sizes(*tensor).iter().all(|&size| size == 1);
        let Some(mut tensors) = tensors else { return self.fix_all(graph, ids) };
        tensors.retain(|tensor| !is_one(tensor));
        let Some((&first, others)) = tensors.split_first() else { return self.fix_all(graph, ids) };
        if others.iter().any(|&other| sizes(other) != sizes(first)) {
            return self.fix_all(graph, ids);
        }
        others.iter().for_each(|&other| self.join(first, other));
    }

    fn convolution(&mut self, graph: &PlanGraph<'_>, ids: &[ValueId], out: usize) {
        let tensor_at = |at: usize| ids.get(at).and_then(|&id| tensor(graph, id));
        let (Some(input), Some(output)) = (tensor_at(conv::FORWARD.input), tensor_at(out)) else { return };
        let bounds = |tensor: u32| graph.tensor(tensor).bounds();
        let constant = ids.get(conv::FORWARD.weight).is_some_and(|&weight| graph.constant(weight).is_some());
        let weight = tensor_at(conv::FORWARD.weight).map(bounds);
        let transposed = !matches!(graph.value(ids[conv::FORWARD.transposed]), Value::Bool(false));
        let grouped = !matches!(graph.value(ids[conv::FORWARD.groups]), Value::Int(1));
        let rank = weight.map_or(0, <[_]>::len);
        let images = [input, output].iter().all(|&image| bounds(image).len() == rank);
        let Some(&[_, per_group, ..]) = weight.filter(|_| constant && !(transposed && grouped) && images) else {
            return self.fix_all(graph, ids);
        };
        // A channel with several outputs of its own has no fast algorithm with the channels innermost, and groups have
        // none from one order to the other.
        let channels = bounds(input)[1];
        if per_group == 1 && grouped && bounds(output)[1] != channels {
            return self.fix_all(graph, ids);
        }
        // Nor have groups of less than a vector of channels and windows of more than three in a line.
        let wide = weight.and_then(|sizes| sizes.last()).is_some_and(|&taps| taps > 3);
        if grouped && (2..LANES).contains(&per_group) && wide {
            return self.fix_all(graph, ids);
        }
        if grouped {
            self.join(input, output);
        }
        for image in [input, output] {
            let root = self.root(image);
            self.convolved[root as usize] += 1;
        }
        let root = self.root(output);
        self.pays[root as usize] = true;
    }

    fn fix_all(&mut self, graph: &PlanGraph<'_>, ids: &[ValueId]) {
        for &id in ids {
            match graph.value(id) {
                Value::Tensor(tensor) => self.fix(tensor),
                Value::TensorList(span) | Value::OptionalTensorList(span) => {
                    for &item in graph.items(span).iter().filter(|&&item| item != NONE) {
                        if let Some(tensor) = tensor(graph, item) {
                            self.fix(tensor);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
