//! Effects of calls on storages: making new ones, showing parts of one, or changing one.

use edgepack_format::operators::Schema;

use super::layout::{can_be_viewed, is_contiguous, memory_order};
use super::storage::{Base, Storages};
use super::view::{Places, Step};
use crate::decompose::Composite;
use crate::error::Error;
use crate::graph::{Argument, Graph, MemoryFormat, Meta, Size, TensorMeta, ValueId};
use crate::operators;

/// Effect of a call on storages.
pub(super) enum Effect {
    /// The results have storages of their own.
    None,
    /// It changes what it is given.
    Change,
    /// The results are the tensor itself, unchanged.
    Same(ValueId),
    /// It lets the tensor show a view of what it showed.
    Turn(ValueId, Step),
    /// The results are views of one tensor, or of its storage.
    Views {
        of: (ValueId, Base),
        views: Vec<(ValueId, Vec<Step>)>,
        /// True if the call would not see its view once storages are values, so that the views replace it.
        replace: bool,
    },
    /// The results may have the storages of these values.
    Maybe(Vec<ValueId>),
}

/// Operators that are not views by schema and may give back what they are given, or a view of it.
const MAYBE: [&str; 12] = [
    "einsum",
    "meshgrid",
    "sum_to_size",
    "cartesian_prod",
    "chain_matmul",
    "_conj",
    "conj",
    "_neg_view",
    "lift",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
];

/// A call, what it is given first, and what there is.
struct Seen<'a> {
    graph: &'a Graph,
    call: &'a Composite<'a>,
    of: ValueId,
    meta: TensorMeta,
}

/// Recognises the effect of a call on storages.
pub(super) fn recognise(
    graph: &Graph,
    schema: &Schema<'_>,
    call: &Composite<'_>,
    storages: &Storages,
) -> Result<Effect, Error> {
    let Some(op) = call.node.target.operator().filter(|op| op.namespace == "aten") else {
        return Ok(other(schema, call));
    };
    let name = op.name.as_str();
    let first = ["self", "input"].into_iter().find_map(|name| call.arg(name).value());
    let meta = |value: ValueId| storages.meta(value).or_else(|| graph.tensor(value)).cloned();
    let seen = first.and_then(|of| Some(Seen { graph, call, of, meta: meta(of)? }));
    let Some(seen) = seen else {
        return Ok(match name {
            "broadcast_tensors" => broadcast(graph, call).unwrap_or_else(|| other(schema, call)),
            _ => other(schema, call),
        });
    };
    if let Some(effect) = seen.in_place(name)? {
        return Ok(effect);
    }
    if !operators::is_functional(schema) {
        return Ok(Effect::Change);
    }
    if name == "as_strided" {
        return seen.strided(storages);
    }
    if let Some(steps) = seen.pieces(name)? {
        return Ok(seen.views(steps));
    }
    Ok(match seen.one(name)? {
        Some(Shown::View(steps)) => seen.views(vec![steps]),
        Some(Shown::Copy) => Effect::None,
        Some(Shown::Unknown) => Effect::Maybe(vec![seen.of]),
        None => other(schema, call),
    })
}

/// A call that none of the above is.
fn other(schema: &Schema<'_>, call: &Composite<'_>) -> Effect {
    let Some(op) = call.node.target.operator() else { return Effect::None };
    if !operators::is_functional(schema) {
        return Effect::Change;
    }
    if op.name == "lift_fresh" {
        return Effect::None;
    }
    let mut read = Vec::new();
    call.node.each_input(&mut |value| read.push(value));
    match operators::is_view(schema) || op.namespace == "aten" && MAYBE.contains(&op.name.as_str()) {
        true => Effect::Maybe(read),
        false => Effect::None,
    }
}

/// Tensors repeated to the sizes of each other.
fn broadcast(graph: &Graph, call: &Composite<'_>) -> Option<Effect> {
    let values: Option<Vec<ValueId>> = call.arg("tensors").items().iter().map(Argument::value).collect();
    let values = values?;
    match (values.as_slice(), call.node.results().as_slice()) {
        ([of], [result]) => {
            let steps = vec![Step::Expand(graph.tensor(*result)?.sizes.clone())];
            Some(Effect::Views { of: (*of, Base::Tensor), views: vec![(*result, steps)], replace: false })
        }
        _ => Some(Effect::Maybe(values)),
    }
}

/// View that a call with one result makes of its first argument.
enum Shown {
    View(Vec<Step>),
    Copy,
    Unknown,
}

impl Seen<'_> {
    fn views(&self, steps: Vec<Vec<Step>>) -> Effect {
        let views = self.call.node.results().into_iter().zip(steps).collect();
        Effect::Views { of: (self.of, Base::Tensor), views, replace: false }
    }

    fn dim(&self, dim: i64) -> Result<i64, Error> {
        let rank = i64::try_from(self.meta.rank()).unwrap_or(0).max(1);
        let front = if dim < 0 { dim.saturating_add(rank) } else { dim };
        match (0..rank).contains(&front) {
            true => Ok(front),
            false => {
                Err(Error::program(format!("node `{}`", self.call.node.name), format!("dimension {dim} of {rank}")))
            }
        }
    }

    fn size(&self, dim: i64) -> Option<&Size> {
        self.meta.sizes.get(usize::try_from(dim).ok()?)
    }

    fn result(&self) -> Option<&TensorMeta> {
        self.graph.tensor(self.call.node.result()?)
    }

    /// The sizes that were recorded for the result.
    fn sizes(&self) -> Result<Vec<Size>, Error> {
        let missing = || Error::program(format!("node `{}`", self.call.node.name), "it gives no tensor");
        Ok(self.result().ok_or_else(missing)?.sizes.clone())
    }

    fn swap(&self, a: i64, b: i64) -> Result<Step, Error> {
        let mut dims: Vec<i64> = (0..).take(self.meta.rank()).collect();
        let at = |dim| Ok::<_, Error>(usize::try_from(self.dim(dim)?).unwrap_or(0));
        let (a, b) = (at(a)?, at(b)?);
        if a.max(b) < dims.len() {
            dims.swap(a, b);
        }
        Ok(Step::Permute(dims))
    }

    fn reversed(&self) -> Step {
        let mut dims: Vec<i64> = (0..).take(self.meta.rank()).collect();
        dims.reverse();
        Step::Permute(dims)
    }

    /// Calls that change no element of what they are given.
    fn in_place(&self, name: &str) -> Result<Option<Effect>, Error> {
        let int = |name: &str| self.call.int(name);
        let turn = |step: Step| Some(Effect::Turn(self.of, step));
        Ok(match name {
            "t_" => turn(self.swap(0, if self.meta.rank() < 2 { 0 } else { 1 })?),
            "transpose_" => turn(self.swap(int("dim0")?, int("dim1")?)?),
            "swapaxes_" => turn(self.swap(int("axis0")?, int("axis1")?)?),
            "swapdims_" => turn(self.swap(int("dim0")?, int("dim1")?)?),
            "squeeze_" | "unsqueeze_" => turn(Step::Sizes(self.sizes()?)),
            "detach_" | "requires_grad_" => Some(Effect::Same(self.of)),
            "dropout_" | "feature_dropout_" | "alpha_dropout_" | "feature_alpha_dropout_" if self.drops_nothing() => {
                Some(Effect::Same(self.of))
            }
            _ => None,
        })
    }

    fn drops_nothing(&self) -> bool {
        !self.call.flag("train") || self.call.number("p") == Some(0.0)
    }

    /// The views that a call gives a list of.
    fn pieces(&self, name: &str) -> Result<Option<Vec<Vec<Step>>>, Error> {
        let results = self.call.node.results();
        let dim = |default: i64| match self.call.has("dim") {
            true => self.call.int("dim"),
            false => Ok(default),
        };
        // `hsplit` of one dimension splits that.
        let along = match name {
            "split"
            | "split_with_sizes"
            | "chunk"
            | "tensor_split"
            | "unsafe_split"
            | "unsafe_split_with_sizes"
            | "unsafe_chunk" => self.dim(dim(0)?)?,
            "unbind" => {
                let along = self.dim(dim(0)?)?;
                let steps = (0..).zip(&results).map(|(index, _)| vec![Step::Select(along, Argument::Int(index))]);
                return Ok(Some(steps.collect()));
            }
            "vsplit" => 0,
            "hsplit" => i64::from(self.meta.rank() > 1),
            "dsplit" => 2,
            _ => return Ok(None),
        };
        let mut start = Some(0i64);
        let mut steps = Vec::with_capacity(results.len());
        for result in &results {
            let piece = self.graph.tensor(*result).and_then(|meta| meta.sizes.get(usize::try_from(along).ok()?));
            let end = start.zip(piece.and_then(Size::known)).map(|(start, len)| start.saturating_add(len));
            let Some((from, to)) = start.zip(end) else { return Ok(None) };
            steps.push(vec![Step::Slice(along, [Argument::Int(from), Argument::Int(to), Argument::Int(1)])]);
            start = end;
        }
        Ok(Some(steps))
    }

    /// Returns the view that a call with one result makes.
    fn one(&self, name: &str) -> Result<Option<Shown>, Error> {
        let call = self.call;
        let view = |step: Step| Ok(Some(Shown::View(vec![step])));
        let whole = || Shown::View(vec![Step::Sizes(self.meta.sizes.clone())]);
        let when = |yes: Option<bool>, shown: Shown| match yes {
            Some(true) => shown,
            Some(false) => Shown::Copy,
            None => Shown::Unknown,
        };
        let complex = self.meta.scalar_type.is_complex();
        match name {
            "alias" | "detach" => Ok(Some(whole())),
            "positive" => Ok(Some(whole())),
            "resolve_conj" | "resolve_neg" | "conj" | "_conj" | "real" if !complex => Ok(Some(whole())),
            "dropout" | "feature_dropout" | "alpha_dropout" | "feature_alpha_dropout" if self.drops_nothing() => {
                Ok(Some(whole()))
            }
            "view" if self.result().is_some_and(|result| result.scalar_type != self.meta.scalar_type) => {
                view(Step::Call(call.node.clone()))
            }
            "view" | "_unsafe_view" | "_reshape_alias" | "view_as" | "unsqueeze" | "squeeze" | "unflatten" => {
                view(Step::Sizes(self.sizes()?))
            }
            "atleast_1d" | "atleast_2d" | "atleast_3d" => view(Step::Sizes(self.sizes()?)),
            "reshape" | "reshape_as" | "flatten" => {
                let sizes = self.sizes()?;
                Ok(Some(when(can_be_viewed(&self.meta, &sizes), Shown::View(vec![Step::Sizes(sizes)]))))
            }
            "ravel" => {
                let contiguous = is_contiguous(&self.meta, MemoryFormat::Contiguous);
                Ok(Some(when(contiguous, Shown::View(vec![Step::Sizes(self.sizes()?)]))))
            }
            "contiguous" => {
                let format = match call.arg("memory_format") {
                    Argument::MemoryFormat(format) => format,
                    _ => MemoryFormat::Contiguous,
                };
                Ok(Some(when(is_contiguous(&self.meta, format), whole())))
            }
            "to" | "type_as" => Ok(Some(self.to())),
            "t" => view(self.swap(0, if self.meta.rank() < 2 { 0 } else { 1 })?),
            "numpy_T" | "T" => view(self.reversed()),
            "mT" => view(self.swap(-1, -2)?),
            "mH" | "adjoint" | "matrix_H" if !complex => view(match self.meta.rank() {
                0 => Step::Sizes(self.meta.sizes.clone()),
                _ => self.swap(-1, -2)?,
            }),
            "transpose" | "swapdims" => view(self.swap(call.int("dim0")?, call.int("dim1")?)?),
            "swapaxes" => view(self.swap(call.int("axis0")?, call.int("axis1")?)?),
            "permute" => {
                let dims = call.ints("dims")?.into_iter().map(|dim| self.dim(dim)).collect::<Result<Vec<_>, _>>()?;
                view(Step::Permute(dims))
            }
            "movedim" | "moveaxis" => view(Step::Permute(self.moved()?)),
            "select" => view(Step::Select(self.dim(call.int("dim")?)?, call.arg("index"))),
            "slice" => {
                let bounds = ["start", "end", "step"].map(|name| call.arg(name));
                view(Step::Slice(self.dim(call.int("dim")?)?, bounds))
            }
            "narrow" => Ok(self.narrow()?.map(|step| Shown::View(vec![step]))),
            "expand" | "expand_as" | "broadcast_to" => view(Step::Expand(self.sizes()?)),
            "diagonal" | "unfold" => view(Step::Call(call.node.clone())),
            "view_as_real" => view(Step::Pairs),
            "view_as_complex" => view(Step::Complex),
            "real" | "imag" if complex => {
                let part = Step::Select(
                    i64::try_from(self.meta.rank()).unwrap_or(0),
                    Argument::Int(i64::from(name == "imag")),
                );
                Ok(Some(Shown::View(vec![Step::Pairs, part])))
            }
            _ => Ok(None),
        }
    }

    /// A part of a dimension from a start that is a number, or computed.
    fn narrow(&self) -> Result<Option<Step>, Error> {
        let dim = self.dim(self.call.int("dim")?)?;
        let (start, length) = (self.call.arg("start"), self.call.arg("length"));
        let size = |arg: &Argument| match arg {
            Argument::Int(number) => Some(Size::Known(*number)),
            Argument::Value(value) => match &self.graph.value(*value)?.meta {
                Meta::Int(size) => Some(size.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some((from, length)) = size(&start).zip(size(&length)) else { return Ok(None) };
        let from = match (from.known(), self.size(dim)) {
            (Some(0..), _) => from,
            (Some(_), Some(size)) => size.plus(&from),
            _ => from,
        };
        Ok(Some(Step::Narrow(dim, from, length)))
    }

    /// Conversions: what has the element type already, in the format asked for, is given back as it is.
    fn to(&self) -> Shown {
        let Some(result) = self.result() else { return Shown::Unknown };
        if self.call.flag("copy") || result.scalar_type != self.meta.scalar_type {
            return Shown::Copy;
        }
        let whole = Shown::View(vec![Step::Sizes(self.meta.sizes.clone())]);
        match self.call.arg("memory_format") {
            Argument::MemoryFormat(MemoryFormat::Preserve) | Argument::None => whole,
            Argument::MemoryFormat(format) => match is_contiguous(&self.meta, format) {
                Some(true) => whole,
                Some(false) => Shown::Copy,
                None => Shown::Unknown,
            },
            _ => Shown::Unknown,
        }
    }

    fn moved(&self) -> Result<Vec<i64>, Error> {
        let list = |name: &str| -> Result<Vec<i64>, Error> {
            let given = match self.call.arg(name) {
                Argument::Int(dim) => vec![dim],
                _ => self.call.ints(name)?,
            };
            given.into_iter().map(|dim| self.dim(dim)).collect()
        };
        let (from, to) = (list("source")?, list("destination")?);
        let mut rest = (0..).take(self.meta.rank()).filter(|dim| !from.contains(dim));
        let order = (0..).take(self.meta.rank()).map(|at| {
            let moved = to.iter().position(|to| *to == at).and_then(|index| from.get(index).copied());
            moved.or_else(|| rest.next()).unwrap_or(0)
        });
        Ok(order.collect())
    }

    /// Places in the storage, whatever the tensor shows of it.
    fn strided(&self, storages: &Storages) -> Result<Effect, Error> {
        let wrong = |message: &str| Error::unsupported(format!("node `{}`", self.call.node.name), message);
        let Some(root) = storages.root(self.of) else { return Ok(Effect::Maybe(vec![self.of])) };
        let first =
            is_contiguous(root, MemoryFormat::Contiguous) == Some(true) && root.storage_offset == Size::Known(0);
        let numbers = self.call.ints("size").ok().zip(self.call.ints("stride").ok());
        let offset = match self.call.arg("storage_offset") {
            Argument::Int(offset) => Some(offset),
            Argument::None => self.meta.storage_offset.known(),
            _ => None,
        };
        let root_sizes: Option<Vec<i64>> = root.sizes.iter().map(Size::known).collect();
        let known = numbers.zip(offset).zip(root.storage_offset.known()).zip(root_sizes).zip(memory_order(root));
        let Some((((((sizes, strides), offset), start), root_sizes), order)) = known else {
            // A tensor in memory order can be read as it is, but not changed.
            return match first && storages.is_whole(self.of) {
                true => Ok(Effect::Maybe(vec![self.of])),
                false => Err(wrong("as_strided of a tensor whose places in memory are not known")),
            };
        };
        let places = Places { sizes, strides, offset: offset.saturating_sub(start) };
        if !places.fit(root_sizes.iter().fold(1i64, |all, size| all.saturating_mul(*size))) {
            return Err(wrong("as_strided reaches beyond what is known of its storage"));
        }
        let steps = match first {
            true => vec![Step::Places(places)],
            false => vec![Step::Permute(order), Step::Places(places)],
        };
        let views = self.call.node.results().into_iter().map(|result| (result, steps.clone())).collect();
        let replace = !(first && storages.is_whole(self.of));
        Ok(Effect::Views { of: (self.of, Base::Storage), views, replace })
    }
}
