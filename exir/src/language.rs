//! Attention of language models with its key/value caches, as the operators that runtimes have for it.
//!
//! A model in plain PyTorch writes keys and values into buffers at the places of its tokens and attends to the whole
//! buffers under a mask. [`recognise`] finds that and puts `llama::update_cache` and `llama::custom_sdpa` in its place:
//! the caches are written where they are, and attention reads no further than the tokens there are.
//!
//! The places of the tokens of a call must follow each other without a gap, from the first on; the operators know no
//! others. Whoever asks for this promises it.

mod mask;

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;

use crate::error::Error;
use crate::graph::{
    Argument, ExportedProgram, Expr, Graph, InputKind, ListKind, Meta, Node, OutputKind, Size, TensorMeta, ValueId,
};

/// Attention as one call.
const ATTENTION: &str = "aten::scaled_dot_product_attention";
/// Heads of keys and values repeated for groups of queries.
const REPEATED: &str = "aten::repeat_interleave.self_int";

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
        } else if let Some(inner) = self.expanded(value) {
            value = inner;
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

    /// Tensor of which each head follows itself so many times: a dimension behind the heads that is expanded and joined
    /// with them. Nothing else reads what is made on the way.
    fn expanded(&self, value: ValueId) -> Option<ValueId> {
        let step = |value: ValueId, names: &[&str]| {
            let (_, node) = self.maker(value).filter(|_| self.reads(value) == 1)?;
            names.iter().any(|name| node.calls(name)).then(|| node.value_arg("self")).flatten()
        };
        let mut joined = step(value, &["aten::view_copy"])?;
        while let Some(inner) = step(joined, &["aten::clone", "dim_order_ops::_clone_dim_order"]) {
            joined = inner;
        }
        let single = step(joined, &["aten::expand_copy"])?;
        let heads = step(single, &["aten::unsqueeze_copy", "aten::view_copy"])?;
        let [batch, own, places, depth] = self.sizes(heads)? else { return None };
        let one = [batch.clone(), own.clone(), Size::Known(1), places.clone(), depth.clone()];
        let times = self.sizes(joined)?.get(2)?.known()?;
        let many = [batch.clone(), own.clone(), Size::Known(times), places.clone(), depth.clone()];
        let all = [batch.clone(), Size::Known(own.known()?.checked_mul(times)?), places.clone(), depth.clone()];
        let is = |value, sizes: &[Size]| self.sizes(value) == Some(sizes);
        (is(single, &one) && is(joined, &many) && is(value, &all)).then_some(heads)
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
