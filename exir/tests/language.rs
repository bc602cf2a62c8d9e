//! Attention with caches, found in programs or left with a reason.

use edgepack_exir::archive::{Storage, Weight};
use edgepack_exir::graph::{
    Argument, Dialect, ExportedProgram, Graph, InputKind, InputSpec, ListKind, OutputKind, OutputSpec, Size,
    TensorMeta, ValueId,
};
use edgepack_exir::language;
use edgepack_exir::lower::{Options, ProgramManager};
use edgepack_format::scalar::ScalarType;

const PLACES: i64 = 4;

fn meta(kind: ScalarType, sizes: &[i64]) -> TensorMeta {
    let sizes: Vec<Size> = sizes.iter().map(|size| Size::Known(*size)).collect();
    TensorMeta::contiguous(kind, &sizes)
}

fn floats(sizes: &[i64]) -> TensorMeta {
    meta(ScalarType::FLOAT, sizes)
}

/// Two tokens, two heads of queries and one of keys; the mask has `seen(row, column)`.
fn program(seen: fn(i64, i64) -> bool, reads_cache: bool) -> ExportedProgram<'static> {
    let rows = |g: &mut Graph, table: ValueId, positions: ValueId| {
        let indices = Argument::List(ListKind::OptionalTensors, vec![positions.into()]);
        let args = [("self", table.into()), ("indices", indices)];
        g.call("aten::index.Tensor", args, meta(ScalarType::BOOL, &[2, PLACES]))
    };
    masked(rows, seen, reads_cache, false)
}

/// The same with another mask, made of a table of truths and the places of the tokens; heads of keys and values are
/// repeated by the attention, or by views.
fn masked(
    mask_of: impl Fn(&mut Graph, ValueId, ValueId) -> ValueId,
    seen: fn(i64, i64) -> bool,
    reads_cache: bool,
    by_views: bool,
) -> ExportedProgram<'static> {
    let mut g = Graph::default();
    let buffers = ["keys", "values"].map(|name| (name, g.add_input(name, floats(&[1, 1, PLACES, 8]))));
    let mask = g.add_input("mask", meta(ScalarType::BOOL, &[PLACES, PLACES]));
    let [query, rows] = [2, 1].map(|heads| g.add_input("x", floats(&[1, heads, 2, 8])));
    let positions = g.add_input("positions", meta(ScalarType::LONG, &[2]));
    let write = |g: &mut Graph, cache: ValueId| {
        let places = vec![Argument::None, Argument::None, positions.into()];
        let args = [
            ("self", cache.into()),
            ("indices", Argument::List(ListKind::OptionalTensors, places)),
            ("values", rows.into()),
        ];
        g.call("aten::index_put", args, floats(&[1, 1, PLACES, 8]))
    };
    let written = buffers.map(|(_, cache)| write(&mut g, cache));
    let mask_rows = mask_of(&mut g, mask, positions);
    let read = written.map(|cache| match by_views {
        false => cache,
        true => {
            let one = [("self", cache.into()), ("dim", 2i64.into())];
            let one = g.call("aten::unsqueeze", one, floats(&[1, 1, 1, PLACES, 8]));
            let size = Argument::ints([1, 1, 2, PLACES, 8]);
            let many = g.call("aten::expand", [("self", one.into()), ("size", size)], floats(&[1, 1, 2, PLACES, 8]));
            let size = Argument::ints([1, 2, PLACES, 8]);
            g.call("aten::reshape", [("self", many.into()), ("shape", size)], floats(&[1, 2, PLACES, 8]))
        }
    });
    let args = [
        ("query", query.into()),
        ("key", read[0].into()),
        ("value", read[1].into()),
        ("attn_mask", mask_rows.into()),
        ("enable_gqa", (!by_views).into()),
    ];
    let y = g.call("aten::scaled_dot_product_attention", args, floats(&[1, 2, 2, 8]));
    let mut outputs = vec![written[0], written[1], y];
    if reads_cache {
        outputs.push(g.call("aten::neg", [("self", written[0].into())], floats(&[1, 1, PLACES, 8])));
    }
    g.outputs = outputs.iter().map(|id| (*id).into()).collect();
    let mut program = ExportedProgram::from_graph(g, Dialect::Aten);
    for (index, (name, id)) in buffers.into_iter().enumerate() {
        let storage = Storage::owned(name, vec![0; 4 * 8 * PLACES as usize]);
        let weight = Weight::contiguous(storage, ScalarType::FLOAT, &[1, 1, PLACES as usize, 8]).unwrap();
        program.weights.state.insert(name.to_owned(), weight);
        let kind = InputKind::Buffer { name: name.to_owned(), persistent: true };
        program.inputs[index] = InputSpec { kind, arg: id.into() };
        program.outputs[index] =
            OutputSpec { kind: OutputKind::BufferMutation(name.to_owned()), arg: written[index].into() };
    }
    let triangle = (0..PLACES).flat_map(|row| (0..PLACES).map(move |column| u8::from(seen(row, column))));
    let storage = Storage::owned("mask", triangle.collect());
    let weight = Weight::contiguous(storage, ScalarType::BOOL, &[PLACES as usize; 2]).unwrap();
    program.weights.constants.insert("mask".to_owned(), weight);
    program.inputs[2] = InputSpec { kind: InputKind::Constant("mask".to_owned()), arg: mask.into() };
    program
}

fn recognised(program: ExportedProgram<'static>) -> (ProgramManager<'static>, Result<usize, &'static str>) {
    let mut manager = ProgramManager::new(Options::default());
    manager.keep_whole(language::WHOLE).add("forward", program).unwrap();
    let found = manager.change(language::recognise).unwrap().remove(0).1.remove(0).places;
    (manager, found)
}

#[test]
fn caches_are_written_where_they_are() {
    let (manager, found) = recognised(program(|row, column| column <= row, false));
    assert_eq!(found, Ok(PLACES as usize));
    let built = manager.emit().unwrap();
    let operators: Vec<&str> = built.origins[0].instructions.iter().map(|origin| origin.operator.as_str()).collect();
    let count = |name: &str| operators.iter().filter(|operator| **operator == name).count();
    assert_eq!(count("llama::update_cache.out"), 2, "{operators:?}");
    assert_eq!(count("llama::custom_sdpa.out"), 1, "{operators:?}");
    // Nothing is copied back into the buffers.
    assert_eq!(count("aten::copy_"), 0, "{operators:?}");
}

#[test]
fn attention_that_sees_other_places_stays() {
    let why = "the mask does not let each token see the places up to its own and no others";
    assert_eq!(recognised(program(|_, _| true, false)).1, Err(why));
    assert_eq!(recognised(program(|row, column| column < row, false)).1, Err(why));
    assert_eq!(recognised(program(|row, column| column <= row && column + 2 > row, false)).1, Err(why));
}

/// Truths of a comparison of all places, or of as many, with those of the tokens.
fn compared(g: &mut Graph, name: &str, places: i64, positions: ValueId) -> ValueId {
    let all = [("start", 0i64.into()), ("end", places.into()), ("step", 1i64.into())];
    let all = g.call("aten::arange.start_step", all, meta(ScalarType::LONG, &[places]));
    let own = [("self", positions.into()), ("dim", 1i64.into())];
    let own = g.call("aten::unsqueeze", own, meta(ScalarType::LONG, &[2, 1]));
    g.call(name, [("self", all.into()), ("other", own.into())], meta(ScalarType::BOOL, &[2, places]))
}

/// Numbers to be added: these where a condition holds, those elsewhere.
fn added(g: &mut Graph, condition: ValueId, there: f64, elsewhere: f64) -> ValueId {
    let [there, elsewhere] = [there, elsewhere].map(|number| {
        let args = [("size", Argument::ints([2, PLACES])), ("fill_value", number.into())];
        g.call("aten::full", args, floats(&[2, PLACES]))
    });
    let args = [("condition", condition.into()), ("self", there.into()), ("other", elsewhere.into())];
    g.call("aten::where.self", args, floats(&[2, PLACES]))
}

#[test]
fn masks_are_compared_added_and_turned_round() {
    let low = f64::NEG_INFINITY;
    let least = f64::from(f32::MIN);
    type Mask = fn(&mut Graph, ValueId) -> ValueId;
    let right: [Mask; 5] = [
        |g, positions| compared(g, "aten::le.Tensor", PLACES, positions),
        |g, positions| {
            let hidden = compared(g, "aten::gt.Tensor", PLACES, positions);
            g.call("aten::logical_not", [("self", hidden.into())], meta(ScalarType::BOOL, &[2, PLACES]))
        },
        |g, positions| {
            let seen = compared(g, "aten::le.Tensor", PLACES, positions);
            added(g, seen, 0.0, f64::NEG_INFINITY)
        },
        |g, positions| {
            let hidden = compared(g, "aten::gt.Tensor", PLACES, positions);
            added(g, hidden, f64::from(f32::MIN), 0.0)
        },
        |g, positions| {
            let seen = compared(g, "aten::le.Tensor", PLACES, positions);
            let mask = added(g, seen, 0.0, f64::NEG_INFINITY);
            let size = Argument::ints([1, 1, 2, PLACES]);
            g.call("aten::view", [("self", mask.into()), ("size", size)], floats(&[1, 1, 2, PLACES]))
        },
    ];
    for mask in right {
        let made = masked(|g, _, positions| mask(g, positions), |_, _| true, false, false);
        assert_eq!(recognised(made).1, Ok(PLACES as usize));
    }
    let why = "the mask does not let each token see the places up to its own and no others";
    for (name, [there, elsewhere]) in [
        ("aten::lt.Tensor", [0.0, low]),
        ("aten::le.Tensor", [low, 0.0]),
        ("aten::le.Tensor", [0.0, -1e4]),
        ("aten::le.Tensor", [1.0, low]),
        ("aten::gt.Tensor", [0.0, least]),
    ] {
        let mask = |g: &mut Graph, _: ValueId, positions: ValueId| {
            let truths = compared(g, name, PLACES, positions);
            added(g, truths, there, elsewhere)
        };
        assert_eq!(recognised(masked(mask, |_, _| true, false, false)).1, Err(why), "{name} {there} {elsewhere}");
    }
    let hidden = |g: &mut Graph, _: ValueId, positions: ValueId| compared(g, "aten::gt.Tensor", PLACES, positions);
    assert_eq!(recognised(masked(hidden, |_, _| true, false, false)).1, Err(why));
}

#[test]
fn heads_that_views_repeat_are_those_of_the_cache() {
    let seen = |g: &mut Graph, _: ValueId, positions: ValueId| compared(g, "aten::le.Tensor", PLACES, positions);
    let (manager, found) = recognised(masked(seen, |_, _| true, false, true));
    assert_eq!(found, Ok(PLACES as usize));
    let built = manager.emit().unwrap();
    let operators: Vec<&str> = built.origins[0].instructions.iter().map(|origin| origin.operator.as_str()).collect();
    assert!(!operators.contains(&"aten::expand_copy.out"), "{operators:?}");
}

#[test]
fn a_cache_that_others_read_stays_a_tensor() {
    let (manager, found) = recognised(program(|row, column| column <= row, true));
    assert_eq!(found, Err("a cache is read by something else, too, or does not stay"));
    assert!(manager.emit().is_ok());
}
