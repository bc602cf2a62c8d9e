//! Attention of language models with its key/value caches, as the operators that runtimes have for it.
//!
//! A model in plain PyTorch writes keys and values into buffers at the places of its tokens and attends to the whole
//! buffers under a mask. [`recognise`] finds that and puts `llama::update_cache` and `llama::custom_sdpa` in its place:
//! the caches are written where they are, and attention reads no further than the tokens there are.
//!
//! The places of the tokens of a call must follow each other without a gap, from the first on; the operators know no
//! others. Whoever asks for this promises it.

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;

use crate::archive::Weight;
use crate::error::Error;
use crate::graph::{
    Argument, ExportedProgram, Expr, Graph, InputKind, ListKind, Meta, Node, OutputKind, Size, TensorMeta, ValueId,
};

/// Attention as one call.
const ATTENTION: &str = "aten::scaled_dot_product_attention";
/// Heads of keys and values repeated for groups of queries.
const REPEATED: &str = "aten::repeat_interleave.self_int";
/// Most numbers of a mask that is looked at: beyond, a model would have to say that it is causal.
const MOST_MASK: usize = 1 << 28;

/// Composite operators that have to stay whole in programs for [`recognise`] to see them.
pub const WHOLE: [&str; 2] = [ATTENTION, REPEATED];

/// An attention of a program, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attention {
    /// Name of its node.
    pub node: String,
    /// Places of the cache; an attention that stays has the reason instead.
    pub places: Result<usize, &'static str>,
}

/// Puts the operators of runtimes in the place of every attention with caches, and answers with all there are. The
/// program is one of the Edge dialect in which the operators of [`WHOLE`] are whole.
pub fn recognise(program: &mut ExportedProgram<'_>) -> Result<Vec<Attention>, Error> {
    let look = Look::new(program);
    let mut answers = Vec::new();
    let mut steps = Vec::new();
    for (index, node) in program.graph.nodes.iter().enumerate().filter(|(_, node)| node.calls(ATTENTION)) {
        let found = look.attention(index, node);
        let places = found.as_ref().map(|step| step.keys.places).map_err(|reason| *reason);
        answers.push(Attention { node: node.name.clone(), places });
        steps.extend(found);
    }
    for cache in steps.iter().flat_map(|step| [&step.keys, &step.values]) {
        cache.turn(program);
    }
    write(&mut program.graph, &steps);
    program.graph.remove_unused(|_| false);
    program.name_outputs();
    program.graph.check()?;
    Ok(answers)
}

/// A buffer that keys or values are written to.
struct Cache {
    name: String,
    /// Buffer before and after the call.
    before: ValueId,
    after: ValueId,
    /// Rows that are written: `[B, heads, tokens, D]`.
    written: ValueId,
    put: usize,
    places: usize,
}

/// An attention that was found.
struct Step {
    node: usize,
    query: ValueId,
    keys: Cache,
    values: Cache,
    positions: ValueId,
    scale: Argument,
}

/// Makers and readers of values.
struct Look<'p, 'd> {
    program: &'p ExportedProgram<'d>,
    makers: BTreeMap<ValueId, usize>,
    readers: BTreeMap<ValueId, usize>,
}

impl<'p, 'd> Look<'p, 'd> {
    fn new(program: &'p ExportedProgram<'d>) -> Self {
        let (mut makers, mut readers) = (BTreeMap::new(), BTreeMap::<ValueId, usize>::new());
        let mut read = |value: ValueId| {
            let count = readers.entry(value).or_default();
            *count = count.saturating_add(1);
        };
        for (index, node) in program.graph.nodes.iter().enumerate() {
            node.each_output(&mut |value| {
                makers.insert(value, index);
            });
            node.each_input(&mut read);
        }
        program.graph.outputs.iter().for_each(|output| output.each_value(&mut read));
        Look { program, makers, readers }
    }

    fn maker(&self, value: ValueId) -> Option<(usize, &'p Node)> {
        let index = *self.makers.get(&value)?;
        Some((index, self.program.graph.nodes.get(index)?))
    }

    fn reads(&self, value: ValueId) -> usize {
        self.readers.get(&value).copied().unwrap_or(0)
    }

    fn sizes(&self, value: ValueId) -> Option<&'p [Size]> {
        self.program.graph.tensor(value).map(|meta| meta.sizes.as_slice())
    }

    fn attention(&self, node: usize, call: &Node) -> Result<Step, &'static str> {
        let value = |name| call.value_arg(name).ok_or("an operand is not a tensor");
        let query = value("query")?;
        if call.arg("dropout_p").is_some_and(|rate| !matches!(rate, Argument::Float(0.0) | Argument::Int(0))) {
            return Err("it drops numbers at random");
        }
        if call.arg("is_causal") == Some(&Argument::Bool(true)) {
            return Err("it is causal by itself, which counts from the first place of the cache");
        }
        let (keys, positions) = self.cache(value("key")?)?;
        let (values, others) = self.cache(value("value")?)?;
        if positions != others {
            return Err("keys and values are written to different places");
        }
        let mask = call.value_arg("attn_mask").ok_or("it has no mask, so it sees places that are not written yet")?;
        self.causal(mask, positions, keys.places)?;
        let [query_sizes, key_sizes] = [self.sizes(query), self.sizes(keys.before)];
        let fits = match (query_sizes, key_sizes) {
            (Some([batch, heads, _, depth]), Some([own_batch, own_heads, _, own_depth])) => {
                let groups = heads.known().zip(own_heads.known());
                let groups = groups.and_then(|(heads, own)| heads.checked_rem(own)) == Some(0);
                batch == own_batch && depth == own_depth && groups && depth.known().is_some()
            }
            _ => false,
        };
        let floats = |value| self.program.graph.tensor(value).map(|meta| meta.scalar_type) == Some(ScalarType::FLOAT);
        if !fits || !floats(query) || !floats(keys.before) || !floats(values.before) {
            return Err("queries and caches are not images of one batch and depth in single precision");
        }
        let scale = call.arg("scale").cloned().unwrap_or(Argument::None);
        Ok(Step { node, query, keys, values, positions, scale })
    }

    /// Cache that keys or values are, perhaps with their heads repeated, and the places that are written.
    fn cache(&self, value: ValueId) -> Result<(Cache, ValueId), &'static str> {
        let mut value = value;
        let mut once = true;
        // Heads are repeated by one call at most.
        if let Some((_, node)) = self.maker(value).filter(|(_, node)| node.calls(REPEATED)) {
            if node.arg("dim").and_then(Argument::as_int) != Some(1) {
                return Err("something else than heads is repeated");
            }
            once &= self.reads(value) == 1;
            value = node.value_arg("self").ok_or("an operand is not a tensor")?;
        }
        let (put, node) = self.maker(value).ok_or("keys or values are not a cache")?;
        if !node.calls("aten::index_put") || node.arg("accumulate") == Some(&Argument::Bool(true)) {
            return Err("keys or values are not written into a cache by `index_put`");
        }
        let positions = match node.arg("indices").map(Argument::items) {
            Some([Argument::None, Argument::None, Argument::Value(positions)]) => *positions,
            _ => return Err("a cache is not written along its third dimension"),
        };
        let (Some(before), Some(written)) = (node.value_arg("self"), node.value_arg("values")) else {
            return Err("an operand is not a tensor");
        };
        let written = self.batched(written);
        let buffer = self.program.inputs.iter().find(|spec| spec.arg.value() == Some(before));
        let Some(InputKind::Buffer { name, .. }) = buffer.map(|spec| &spec.kind) else {
            return Err("a cache is not a buffer of the model");
        };
        let kept = self
            .program
            .outputs
            .iter()
            .any(|spec| spec.kind == OutputKind::BufferMutation(name.clone()) && spec.arg.value() == Some(value));
        // The call before and the output are all that may read it; nothing may read what it was.
        if !kept || !once || self.reads(value) != 2 || self.reads(before) != 1 {
            return Err("a cache is read by something else, too, or does not stay");
        }
        let places = match (self.sizes(before), self.sizes(written)) {
            (Some([a, b, places, d]), Some([x, y, _, w])) if [a, b, d] == [x, y, w] => places.known(),
            _ => return Err("what is written does not have the sizes of the cache"),
        };
        let places = places.and_then(|places| usize::try_from(places).ok()).ok_or("the cache has no fixed length")?;
        let name = name.clone();
        Ok((Cache { name, before, after: value, written, put, places }, positions))
    }

    /// Same tensor before a batch of one was dropped from it, if it was.
    fn batched(&self, value: ValueId) -> ValueId {
        let whole = || {
            let (_, node) = self.maker(value).filter(|(_, node)| node.calls("aten::view_copy"))?;
            let whole = node.value_arg("self")?;
            let (batch, rest) = self.sizes(whole)?.split_first()?;
            (batch.known() == Some(1) && Some(rest) == self.sizes(value)).then_some(whole)
        };
        whole().unwrap_or(value)
    }

    /// Checks that a mask lets every token see the places up to its own: rows of a triangle at the places of the tokens,
    /// or a comparison of all places with those.
    fn causal(&self, mask: ValueId, positions: ValueId, places: usize) -> Result<(), &'static str> {
        let wrong = "the mask does not let each token see the places up to its own and no others";
        let (_, node) = self.maker(self.plain(mask)).ok_or(wrong)?;
        let compared = |all: &str, own: &str| {
            let (Some(all), Some(own)) = (node.value_arg(all), node.value_arg(own)) else { return false };
            let along = |value: ValueId, back: usize| {
                let sizes = self.sizes(value).unwrap_or_default();
                sizes.len().checked_sub(back).and_then(|dim| sizes.get(dim)).and_then(Size::known)
            };
            // All places are along the last dimension, those of the tokens along the one before.
            let across = self.sizes(own).is_some_and(|sizes| sizes.len() > 1) && along(own, 1) == Some(1);
            across
                && along(all, 1) == i64::try_from(places).ok()
                && self.counts(self.plain(all), places)
                && self.plain(own) == positions
        };
        let is_compared = node.calls("aten::le.Tensor") && compared("self", "other")
            || node.calls("aten::ge.Tensor") && compared("other", "self");
        match is_compared || self.indexed(node, positions, places) == Some(true) {
            true => Ok(()),
            false => Err(wrong),
        }
    }

    /// Value without dimensions of one element that were put around it.
    fn plain(&self, value: ValueId) -> ValueId {
        let mut value = value;
        // Nodes are in order, so each step leads to an earlier one.
        while let Some((_, node)) = self.maker(value).filter(|(_, node)| node.calls("aten::unsqueeze_copy")) {
            let Some(inner) = node.value_arg("self") else { break };
            value = inner;
        }
        value
    }

    /// Returns whether a value is the numbers from 0 on, one for each place.
    fn counts(&self, value: ValueId, places: usize) -> bool {
        let Some((_, node)) = self.maker(value).filter(|(_, node)| node.calls("aten::arange.start_step")) else {
            return false;
        };
        let number = |name, otherwise| node.arg(name).map_or(Some(otherwise), Argument::as_int);
        let from = (number("start", 0), number("step", 1));
        from == (Some(0), Some(1)) && number("end", -1) == i64::try_from(places).ok()
    }

    /// Returns whether a node takes the rows of a triangle at the places of the tokens.
    fn indexed(&self, node: &Node, positions: ValueId, places: usize) -> Option<bool> {
        let [leading @ .., Argument::Value(last)] = node.arg("indices").map(Argument::items)? else { return None };
        let table = node.value_arg("self").filter(|_| node.calls("aten::index.Tensor"))?;
        let spec = self.program.inputs.iter().find(|spec| spec.arg.value() == Some(table))?;
        let name = spec.kind.tensor().filter(|name| !self.program.changed().any(|changed| changed == *name))?;
        let weight = self.program.weights.find(name)?;
        let plain = leading.iter().all(|index| *index == Argument::None);
        let rows = *last == positions && leading.len().saturating_add(2) == weight.sizes().len();
        Some(plain && rows && is_triangle(weight, places))
    }
}

/// Returns whether a mask lets row `i` see columns 0 to `i` and nothing else.
fn is_triangle(mask: &Weight<'_>, places: usize) -> bool {
    let [leading @ .., rows, columns] = mask.sizes() else { return false };
    let fits = leading.iter().all(|size| *size == 1) && *columns == places && *rows <= places;
    if !fits || rows.saturating_mul(*columns) > MOST_MASK {
        return false;
    }
    let order: Vec<u8> = (0..).take(mask.sizes().len()).collect();
    let Some(bytes) = mask.data(&order).ok().and_then(|(_, data)| data.to_vec().ok()) else { return false };
    let seen: Option<Vec<bool>> = match mask.scalar_type() {
        ScalarType::BOOL => Some(bytes.iter().map(|byte| *byte != 0).collect()),
        ScalarType::FLOAT => {
            let one = |four: &[u8; 4]| match f32::from_le_bytes(*four) {
                0.0 => Some(true),
                f32::NEG_INFINITY => Some(false),
                _ => None,
            };
            bytes.as_chunks::<4>().0.iter().map(one).collect()
        }
        _ => None,
    };
    let row = |(row, seen): (usize, &[bool])| seen.iter().enumerate().all(|(column, seen)| *seen == (column <= row));
    seen.is_some_and(|seen| seen.chunks((*columns).max(1)).enumerate().all(row))
}

/// Sizes with the second and third changed: heads and tokens.
fn turned(sizes: &[Size]) -> Vec<Size> {
    let mut sizes = sizes.to_vec();
    if sizes.len() > 2 {
        sizes.swap(1, 2);
    }
    sizes
}

impl Cache {
    /// Lets the buffer have its tokens before its heads, as the operators want it.
    fn turn(&self, program: &mut ExportedProgram<'_>) {
        for value in [self.before, self.after] {
            if let Some(meta) = program.graph.tensor(value) {
                let meta = TensorMeta::contiguous(meta.scalar_type, &turned(&meta.sizes));
                program.graph.set_meta(value, meta.into());
            }
        }
        for table in [&mut program.weights.state, &mut program.weights.constants] {
            let turned = table.get(&self.name).and_then(|weight| {
                weight.reviewed(|sizes, strides, _| {
                    if sizes.len() > 2 {
                        sizes.swap(1, 2);
                        strides.swap(1, 2);
                    }
                    Some(())
                })
            });
            if let Some(turned) = turned {
                table.insert(self.name.clone(), turned);
            }
        }
    }
}

/// Writes the calls.
fn write(graph: &mut Graph, steps: &[Step]) {
    let nodes = std::mem::take(&mut graph.nodes);
    let mut made: Vec<Node> = Vec::with_capacity(nodes.len());
    let mut starts: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    for (index, mut node) in nodes.into_iter().enumerate() {
        let caches = steps.iter().flat_map(|step| [(step, &step.keys), (step, &step.values)]);
        let put = caches.into_iter().find(|(_, cache)| cache.put == index);
        if let Some((step, cache)) = put {
            let start = match starts.get(&step.positions) {
                Some(start) => *start,
                None => first_of(graph, step.positions, &mut made),
            };
            starts.insert(step.positions, start);
            let rows = turn(graph, cache.written, &mut made);
            let args = [("value", rows.into()), ("cache", cache.before.into()), ("start_pos", start.into())];
            node.become_call("llama::update_cache", args);
        }
        if let Some(step) = steps.iter().find(|step| step.node == index)
            && let (Some(result), Some(start)) = (node.result(), starts.get(&step.positions))
        {
            let rows = turn(graph, step.query, &mut made);
            let sizes = graph.tensor(result).map(|meta| turned(&meta.sizes)).unwrap_or_default();
            let own = graph.add_value(&node.name, TensorMeta::contiguous(ScalarType::FLOAT, &sizes));
            let args = [
                ("query", rows.into()),
                ("key", step.keys.after.into()),
                ("value", step.values.after.into()),
                ("start_pos", (*start).into()),
                ("attn_mask", Argument::None),
                ("drpout_p", Argument::Float(0.0)),
                ("is_causal", Argument::Bool(true)),
                ("scale", step.scale.clone()),
            ];
            let metadata = node.metadata.clone();
            node.become_call("llama::custom_sdpa", args);
            node.outputs = vec![own.into()];
            made.push(node);
            let mut back = permute(graph, own);
            back.outputs = vec![result.into()];
            back.metadata = metadata;
            made.push(back);
            continue;
        }
        made.push(node);
    }
    graph.nodes = made;
}

/// Number of the first place.
fn first_of(graph: &mut Graph, positions: ValueId, made: &mut Vec<Node>) -> ValueId {
    let kind = graph.tensor(positions).map_or(ScalarType::LONG, |meta| meta.scalar_type);
    let args = [("self", positions.into()), ("dim", Argument::Int(0)), ("index", Argument::Int(0))];
    let mut first = graph.make("aten::select_copy.int", args, TensorMeta::contiguous(kind, &[]));
    first.target.make_edge();
    let number = Meta::Int(Size::Symbolic(Expr::symbol("start_pos"), None));
    let argument = first.result().map_or(Argument::None, Argument::from);
    let start = graph.make("aten::_local_scalar_dense", [("self", argument)], number);
    let result = start.result().unwrap_or(positions);
    made.extend([first, start]);
    result
}

fn permute(graph: &mut Graph, x: ValueId) -> Node {
    let meta = graph.tensor(x).map(|meta| TensorMeta::contiguous(meta.scalar_type, &turned(&meta.sizes)));
    let meta = meta.unwrap_or_else(|| TensorMeta::contiguous(ScalarType::FLOAT, &[]));
    let order = Argument::List(ListKind::Ints, [0, 2, 1, 3].map(Argument::Int).to_vec());
    let mut node = graph.make("aten::permute_copy", [("self", x.into()), ("dims", order)], meta);
    node.target.make_edge();
    node
}

/// Heads and tokens changed.
fn turn(graph: &mut Graph, x: ValueId, made: &mut Vec<Node>) -> ValueId {
    let node = permute(graph, x);
    let result = node.result().unwrap_or(x);
    made.push(node);
    result
}
