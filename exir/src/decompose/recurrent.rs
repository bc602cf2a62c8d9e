//! Recurrent layers, unrolled over time.

use super::maker::Maker;
use super::products::linear;
use super::{Answer, Composite, Rule, one};
use crate::error::Error;
use crate::graph::{Argument, ValueId};

/// Ceiling of the number of time steps that are unrolled.
const MOST_STEPS: i64 = 1 << 14;

/// Computation of a layer at each time index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

pub(super) fn find(name: &str) -> Option<Rule> {
    Some(match name {
        "lstm.input" => |make, node| layers(make, node, Cell::Lstm),
        "gru.input" => |make, node| layers(make, node, Cell::Gru),
        "rnn_tanh.input" => |make, node| layers(make, node, Cell::Tanh),
        "rnn_relu.input" => |make, node| layers(make, node, Cell::Relu),
        "lstm_cell" => |make, node| cell(make, node, Cell::Lstm),
        "gru_cell" => |make, node| cell(make, node, Cell::Gru),
        "rnn_tanh_cell" => |make, node| cell(make, node, Cell::Tanh),
        "rnn_relu_cell" => |make, node| cell(make, node, Cell::Relu),
        _ => return None,
    })
}

/// Weights of one direction of one layer.
struct Weights {
    input: ValueId,
    hidden: ValueId,
    input_bias: Option<ValueId>,
    hidden_bias: Option<ValueId>,
    projection: Option<ValueId>,
}

/// State that is passed from one time step to the next.
#[derive(Clone, Copy)]
struct State {
    hidden: ValueId,
    memory: Option<ValueId>,
}

fn layers(make: &mut Maker<'_>, node: &Composite<'_>, cell: Cell) -> Answer {
    let mut input = node.value("input")?;
    let states: Vec<ValueId> = match node.arg("hx") {
        Argument::Value(state) => vec![state],
        list => list.items().iter().filter_map(Argument::value).collect(),
    };
    let params: Vec<ValueId> = node.arg("params").items().iter().filter_map(Argument::value).collect();
    if node.flag("train") && node.number("dropout").is_some_and(|p| p != 0.0) {
        return Err(node.wrong("dropout"));
    }
    let (biases, both) = (node.flag("has_biases"), node.flag("bidirectional"));
    let count = node.int("num_layers")?;
    let directions: i64 = if both { 2 } else { 1 };
    let sets = usize::try_from(count.saturating_mul(directions)).unwrap_or(0).max(1);
    let each = params.len().checked_div(sets).unwrap_or(0);
    let plain = if biases { 4 } else { 2 };
    if !(each == plain || each == plain.saturating_add(1)) || each.saturating_mul(sets) != params.len() {
        return Err(node.wrong("params"));
    }
    let batch_first = node.flag("batch_first");
    if batch_first {
        input = make.transpose(input, 0, 1)?;
    }
    let (mut hidden, mut memory) = (Vec::new(), Vec::new());
    let mut sets = params.chunks(each).zip(0i64..);
    for _ in 0..count {
        let mut outputs = Vec::new();
        for direction in 0..directions {
            let Some((set, at)) = sets.next() else { break };
            let weights = weights(set, biases).ok_or_else(|| node.wrong("params"))?;
            let mut initial = states.iter().copied();
            let mut part = |make: &mut Maker<'_>| initial.next().map(|state| make.select(state, 0, at)).transpose();
            let first = part(make)?.ok_or_else(|| node.wrong("hx"))?;
            let state = State { hidden: first, memory: part(make)? };
            let (output, last) = steps(make, input, &weights, state, cell, direction == 1)?;
            outputs.push(output);
            hidden.push(last.hidden);
            memory.extend(last.memory);
        }
        input = make.cat(&outputs, 2)?;
    }
    if batch_first {
        input = make.transpose(input, 0, 1)?;
    }
    let mut results = vec![Argument::Value(input)];
    for values in [hidden, memory].into_iter().filter(|values| !values.is_empty()) {
        let mut raised = Vec::new();
        for value in values {
            raised.push(make.unsqueeze(value, 0)?);
        }
        results.push(Argument::Value(make.cat(&raised, 0)?));
    }
    Ok(Some(results))
}

fn weights(set: &[ValueId], biases: bool) -> Option<Weights> {
    Some(match (set, biases) {
        ([input, hidden, a, b, rest @ ..], true) => Weights {
            input: *input,
            hidden: *hidden,
            input_bias: Some(*a),
            hidden_bias: Some(*b),
            projection: rest.first().copied(),
        },
        ([input, hidden, rest @ ..], false) => Weights {
            input: *input,
            hidden: *hidden,
            input_bias: None,
            hidden_bias: None,
            projection: rest.first().copied(),
        },
        _ => return None,
    })
}

/// Writes all time steps of one direction of one layer: the outputs of all, and the final state.
fn steps(
    make: &mut Maker<'_>,
    input: ValueId,
    weights: &Weights,
    state: State,
    cell: Cell,
    backwards: bool,
) -> Result<(ValueId, State), Error> {
    let length = make.known_size(input, 0)?;
    if length > MOST_STEPS {
        return Err(make.error(format!("{length} steps, at most {MOST_STEPS} are written out")));
    }
    // Terms that do not depend on the state are computed for all time steps at once.
    let prepared = linear(make, input, weights.input, weights.input_bias)?;
    let mut state = state;
    let mut outputs = Vec::new();
    let order: Vec<i64> = if backwards { (0..length).rev().collect() } else { (0..length).collect() };
    for step in order {
        let prepared = make.select(prepared, 0, step)?;
        state = advance(make, prepared, weights, state, cell)?;
        outputs.push(make.unsqueeze(state.hidden, 0)?);
    }
    if backwards {
        outputs.reverse();
    }
    Ok((make.cat(&outputs, 0)?, state))
}

fn advance(
    make: &mut Maker<'_>,
    prepared: ValueId,
    weights: &Weights,
    state: State,
    cell: Cell,
) -> Result<State, Error> {
    let recurrent = linear(make, state.hidden, weights.hidden, weights.hidden_bias)?;
    let mut next = match cell {
        Cell::Tanh | Cell::Relu => {
            let sum = make.binary("add.Tensor", prepared, recurrent)?;
            let hidden = make.unary(if cell == Cell::Tanh { "tanh" } else { "relu" }, sum)?;
            State { hidden, memory: None }
        }
        Cell::Gru => {
            let ([reset_a, update_a, new_a], [reset_b, update_b, new_b]) =
                (gates(make, prepared)?, gates(make, recurrent)?);
            let reset = make.binary("add.Tensor", reset_a, reset_b)?;
            let reset = make.unary("sigmoid", reset)?;
            let update = make.binary("add.Tensor", update_a, update_b)?;
            let update = make.unary("sigmoid", update)?;
            let new = make.binary("mul.Tensor", reset, new_b)?;
            let new = make.binary("add.Tensor", new_a, new)?;
            let new = make.unary("tanh", new)?;
            // new + update * (hidden - new)
            let off = make.binary("sub.Tensor", state.hidden, new)?;
            let off = make.binary("mul.Tensor", update, off)?;
            State { hidden: make.binary("add.Tensor", new, off)?, memory: None }
        }
        Cell::Lstm => {
            let memory = state.memory.ok_or_else(|| make.error("a memory is missing"))?;
            let sum = make.binary("add.Tensor", prepared, recurrent)?;
            let [take, forget, new, give] = gates(make, sum)?;
            let take = make.unary("sigmoid", take)?;
            let forget = make.unary("sigmoid", forget)?;
            let new = make.unary("tanh", new)?;
            let give = make.unary("sigmoid", give)?;
            let kept = make.binary("mul.Tensor", forget, memory)?;
            let taken = make.binary("mul.Tensor", take, new)?;
            let memory = make.binary("add.Tensor", kept, taken)?;
            let shown = make.unary("tanh", memory)?;
            State { hidden: make.binary("mul.Tensor", give, shown)?, memory: Some(memory) }
        }
    };
    if let Some(projection) = weights.projection {
        next.hidden = linear(make, next.hidden, projection, None)?;
    }
    Ok(next)
}

/// Equal parts of the last dimension.
fn gates<const N: usize>(make: &mut Maker<'_>, value: ValueId) -> Result<[ValueId; N], Error> {
    let count = i64::try_from(N).unwrap_or(1);
    let each = make.known_size(value, -1)?.checked_div(count).unwrap_or(0);
    let lengths = Argument::ints(vec![each; N]);
    let args = [("self", value.into()), ("split_sizes", lengths), ("dim", Argument::Int(-1))];
    let parts = make.calls("split_with_sizes", args)?;
    parts.try_into().map_err(|_| make.error("gates of different lengths"))
}

/// Writes a single time step.
fn cell(make: &mut Maker<'_>, node: &Composite<'_>, cell: Cell) -> Answer {
    let weights = Weights {
        input: node.value("w_ih")?,
        hidden: node.value("w_hh")?,
        input_bias: node.arg("b_ih").value(),
        hidden_bias: node.arg("b_hh").value(),
        projection: None,
    };
    let states: Vec<ValueId> = match node.arg("hx") {
        Argument::Value(state) => vec![state],
        list => list.items().iter().filter_map(Argument::value).collect(),
    };
    let [hidden, rest @ ..] = states.as_slice() else { return Err(node.wrong("hx")) };
    let state = State { hidden: *hidden, memory: rest.first().copied() };
    let prepared = linear(make, node.value("input")?, weights.input, weights.input_bias)?;
    let next = advance(make, prepared, &weights, state, cell)?;
    match next.memory {
        Some(memory) => Ok(Some(vec![next.hidden.into(), memory.into()])),
        None => one(next.hidden),
    }
}
