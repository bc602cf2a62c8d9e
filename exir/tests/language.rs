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
    let indices = Argument::List(ListKind::OptionalTensors, vec![positions.into()]);
    let masked = meta(ScalarType::BOOL, &[2, PLACES]);
    let mask_rows = g.call("aten::index.Tensor", [("self", mask.into()), ("indices", indices)], masked);
    let args = [
        ("query", query.into()),
        ("key", written[0].into()),
        ("value", written[1].into()),
        ("attn_mask", mask_rows.into()),
        ("enable_gqa", true.into()),
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

#[test]
fn a_cache_that_others_read_stays_a_tensor() {
    let (manager, found) = recognised(program(|row, column| column <= row, true));
    assert_eq!(found, Err("a cache is read by something else, too, or does not stay"));
    assert!(manager.emit().is_ok());
}
