//! Packages that break one rule each.

use std::collections::BTreeMap;

use edgepack_builder::mlf::{GraphBuilder, graph_text, params_file};
use edgepack_format::mlf::{DataType, Graph, Param};
use edgepack_format::rules::mlf as rule;
use serde_json::{Value, json};

use crate::hostile_data::{Case, patch};

type Files = BTreeMap<String, Vec<u8>>;

const GRAPH: &str = "executor-config/graph/graph.json";
const PARAMS: &str = "parameters/m.params";
const SOURCE: &str = "codegen/host/src/m_lib0.c";

fn float32() -> DataType {
    "float32".parse().unwrap()
}

/// `y = f(x, p0)`, two elements each.
fn graph() -> Graph {
    let mut graph = GraphBuilder::new();
    let (x, p) = (graph.argument("x", float32(), &[2]), graph.argument("p0", float32(), &[2]));
    let y = graph.call("tvmgen_m_f", &[x, p], &[(float32(), &[2])])[0];
    graph.output(y);
    graph.finish().unwrap()
}

fn param(name: &str) -> Param<'_> {
    Param { name, device_id: 0, data_type: float32(), shape: vec![2], at: 0, data: &[0, 0, 128, 63, 0, 0, 0, 64] }
}

fn module(version: u64) -> Value {
    json!({
        "version": version,
        "model_name": "m",
        "export_datetime": "2021-08-01 12:00:00Z",
        "memory": {
            "functions": {
                "main": [{"device": 1, "workspace_size_bytes": 0, "constants_size_bytes": 8, "io_size_bytes": 16}],
                "operator_functions": [],
            },
            "sids": [
                {"storage_id": 0, "size_bytes": 8, "input_binding": "x"},
                {"storage_id": 1, "size_bytes": 8, "input_binding": "p0"},
                {"storage_id": 2, "size_bytes": 8},
            ],
        },
        "target": {"1": "c"},
        "executors": ["graph"],
        "style": "full-model",
    })
}

fn files() -> Files {
    let source = "#include <stdint.h>\nint32_t tvmgen_m_f(void* args, int32_t* codes, int32_t n) { return 0; }\n";
    let text = |value: Value| value.to_string().into_bytes();
    [
        ("metadata.json", text(module(5))),
        (GRAPH, graph_text(&graph()).into_bytes()),
        (PARAMS, params_file(&[param("p0")]).unwrap()),
        ("src/relay.txt", b"def @main() {}".to_vec()),
        (SOURCE, source.as_bytes().to_vec()),
    ]
    .map(|(path, bytes)| (path.to_owned(), bytes))
    .into()
}

/// One member of a tar as it is stored in the archive.
fn member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut out = header.to_vec();
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn tar(files: &Files) -> Vec<u8> {
    let mut out: Vec<u8> = files.iter().flat_map(|(path, bytes)| member(&format!("./{path}"), b'0', bytes)).collect();
    out.extend([0; 1024]);
    out
}

/// A package without a fault.
pub fn good() -> Vec<u8> {
    tar(&files())
}

/// With another member in front.
fn led_by(name: &str, kind: u8) -> Vec<u8> {
    [member(name, kind, b""), good()].concat()
}

fn changed(change: impl FnOnce(&mut Files)) -> Vec<u8> {
    let mut files = files();
    change(&mut files);
    tar(&files)
}

fn with(path: &str, bytes: &[u8]) -> Vec<u8> {
    changed(|files| drop(files.insert(path.to_owned(), bytes.to_vec())))
}

fn without(path: &str) -> Vec<u8> {
    changed(|files| drop(files.remove(path)))
}

fn edited(path: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(&files()[path]).unwrap();
    change(&mut value);
    with(path, value.to_string().as_bytes())
}

fn metadata(key: &str, value: Value) -> Vec<u8> {
    edited("metadata.json", |json| json[key] = value)
}

fn lacking(path: &str, key: &str) -> Vec<u8> {
    edited(path, |json| drop(json.as_object_mut().unwrap().remove(key)))
}

fn in_graph(pointer: &str, value: Value) -> Vec<u8> {
    edited(GRAPH, |json| {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = json.pointer_mut(parent).unwrap();
        match key.parse::<usize>() {
            Ok(index) => parent[index] = value,
            Err(_) => parent[key] = value,
        }
    })
}

fn storages(ids: Value) -> Vec<u8> {
    in_graph("/attrs/storage_id/1", ids)
}

fn in_params(at: usize, bytes: &[u8]) -> Vec<u8> {
    with(PARAMS, &patch(files()[PARAMS].clone(), at, bytes))
}

/// Two calls whose results are in one storage, and a third that reads the first.
fn overwritten() -> Vec<u8> {
    let mut builder = GraphBuilder::new();
    let x = builder.argument("x", float32(), &[2]);
    let one: &[(DataType, &[u64])] = &[(float32(), &[2])];
    let a = builder.call("tvmgen_m_f", &[x], one)[0];
    let b = builder.call("tvmgen_m_f", &[x], one)[0];
    let c = builder.call("tvmgen_m_f", &[a, b], one)[0];
    builder.output(c);
    let mut graph = builder.finish().unwrap();
    graph.entries[2].storage = graph.entries[1].storage;
    with(GRAPH, graph_text(&graph).as_bytes())
}

fn modules(modules: Value) -> Vec<u8> {
    with("metadata.json", json!({"version": 7, "modules": modules}).to_string().as_bytes())
}

fn seventh() -> Value {
    let mut value = module(7);
    value.as_object_mut().unwrap().remove("version");
    value["target"] = json!(["c"]);
    value
}

fn code() -> Vec<Case> {
    let object = changed(|files| {
        files.remove(SOURCE);
        files.insert("codegen/host/lib/m_lib0.o".into(), b"\x7fELF".to_vec());
    });
    let mut memory = module(5)["memory"].clone();
    memory["functions"]["operator_functions"] = json!([{"function_name": "tvmgen_m_g", "workspace": []}]);
    let unknown = metadata("memory", memory);
    let twice = "codegen/host/src/m_lib1.c";
    vec![
        Case::new("no_code", &rule::NO_CODE, "m", without(SOURCE)),
        Case::new("only_objects", &rule::ONLY_OBJECTS, "m", object),
        Case::new("function_absent", &rule::FUNCTION, "m.graph.nodes[2]", with(SOURCE, b"int tvmgen_m_f(void);")),
        Case::new("operator_absent", &rule::OPERATOR, "m.memory.operator_functions[0]", unknown),
        Case::new("symbol_twice", &rule::SYMBOL, "m.codegen/host/src/m_lib1.c", with(twice, &files()[SOURCE])),
    ]
}

fn archives() -> Vec<Case> {
    let mut cut = good();
    cut.truncate(cut.len() - 1024);
    vec![
        Case::new("bad_checksum", &rule::TAR, "", patch(good(), 148, b"000000")),
        Case::new("cut_off", &rule::TAR, "./src/relay.txt", {
            let bytes = good();
            bytes[..bytes.len() - 1024 - 500].to_vec()
        }),
        Case::new("climbing_name", &rule::NAME, "./a/../../b", led_by("./a/../../b", b'0')),
        Case::new("absolute_name", &rule::NAME, "/etc/passwd", led_by("/etc/passwd", b'0')),
        Case::new("symbolic_link", &rule::KIND, "./link", led_by("./link", b'2')),
        Case::new("device", &rule::KIND, "./null", led_by("./null", b'3')),
        Case::new("name_twice", &rule::MEMBER_REPEATED, "metadata.json", led_by("metadata.json", b'0')),
        Case::new("hidden_behind", &rule::ARCHIVE_TRAILING, "", [good(), vec![1; 512]].concat()),
        Case::new("no_end", &rule::ARCHIVE_END, "", cut),
    ]
}

fn placed() -> Vec<Case> {
    let mut two = seventh();
    two["model_name"] = "n".into();
    let ownerless = changed(|files| {
        let text = json!({"version": 7, "modules": {"m": seventh(), "n": two}}).to_string();
        files.insert("metadata.json".into(), text.into_bytes());
        files.insert("codegen/host/src/other.c".into(), b"int x(void) { return 1; }".to_vec());
    });
    vec![
        Case::new("no_metadata", &rule::NO_METADATA, "metadata.json", without("metadata.json")),
        Case::new("no_graph", &rule::GRAPH_FILE, GRAPH, without(GRAPH)),
        Case::new("no_params", &rule::PARAMS_FILE, PARAMS, without(PARAMS)),
        Case::new("no_relay", &rule::RELAY_FILE, "src/relay.txt", without("src/relay.txt")),
        Case::new("old_place", &rule::MISPLACED, "relay.txt", with("relay.txt", b"def @main() {}")),
        Case::new("unknown_file", &rule::UNKNOWN_FILE, "notes.txt", with("notes.txt", b"")),
        Case::new("ownerless_code", &rule::OWNERLESS, "codegen/host/src/other.c", ownerless),
    ]
}

fn graphs() -> Vec<Case> {
    let reference = |node: u32| json!([node, 0, 0]);
    vec![
        Case::new("no_heads_key", &rule::GRAPH_MISSING, "m.graph.heads", lacking(GRAPH, "heads")),
        Case::new("graph_key", &rule::GRAPH_KEY, "m.graph.version", in_graph("/version", json!(1))),
        Case::new("behind_metadata", &rule::BEHIND_METADATA, "m.graph.nodes", in_graph("/metadata", json!({}))),
        Case::new("nodes_number", &rule::GRAPH_TYPE, "m.graph.nodes", in_graph("/nodes", json!(1))),
        Case::new("reference_negative", &rule::GRAPH_TYPE, "m.graph.heads[0]", in_graph("/heads/0", json!([-1, 0, 0]))),
        Case::new(
            "node_nameless",
            &rule::NODE_MISSING,
            "m.graph.nodes[2]",
            edited(GRAPH, |json| {
                json["nodes"][2].as_object_mut().unwrap().remove("name");
            }),
        ),
        Case::new("node_key", &rule::NODE_KEY, "m.graph.nodes[2]", in_graph("/nodes/2/colour", json!("red"))),
        Case::new("node_op", &rule::NODE_OP, "m.graph.nodes[2]", in_graph("/nodes/2/op", json!("tvm_fn"))),
        Case::new("attr_number", &rule::NODE_ATTR, "m.graph.nodes[2]", in_graph("/nodes/2/attrs/num_inputs", json!(2))),
        Case::new(
            "num_inputs",
            &rule::NUM_INPUTS,
            "m.graph.nodes[2]",
            in_graph("/nodes/2/attrs/num_inputs", json!("3")),
        ),
        Case::new(
            "num_outputs",
            &rule::ROW_PTR,
            "m.graph.node_row_ptr[3]",
            in_graph("/nodes/2/attrs/num_outputs", json!("0")),
        ),
        Case::new(
            "row_ptr_falls",
            &rule::ROW_PTR,
            "m.graph.node_row_ptr[2]",
            in_graph("/node_row_ptr", json!([0, 1, 0, 3])),
        ),
        Case::new("row_ptr_short", &rule::ROW_PTR, "m.graph.node_row_ptr", in_graph("/node_row_ptr", json!([0, 1, 3]))),
        Case::new("head_out_of_range", &rule::REFERENCE, "m.graph.heads[0]", in_graph("/heads/0", reference(9))),
        Case::new(
            "forward_reference",
            &rule::ORDER,
            "m.graph.nodes[2].inputs[0]",
            in_graph("/nodes/2/inputs/0", reference(2)),
        ),
        Case::new("arg_left_out", &rule::ARG_NODES, "m.graph.nodes[1]", in_graph("/arg_nodes", json!([0]))),
        Case::new("arg_name_twice", &rule::ARG_NAME, "m.graph.nodes[1].name", in_graph("/nodes/1/name", json!("x"))),
        Case::new(
            "arg_with_input",
            &rule::ARG_INPUTS,
            "m.graph.nodes[1]",
            in_graph("/nodes/1/inputs", json!([[0, 0, 0]])),
        ),
        Case::new("wrong_tag", &rule::ATTR_TAG, "m.graph.attrs.shape", in_graph("/attrs/shape/0", json!("list_int"))),
        Case::new(
            "unknown_tag",
            &rule::ATTR_TAG,
            "m.graph.attrs.other",
            in_graph("/attrs/other", json!(["list_str", []])),
        ),
        Case::new(
            "list_short",
            &rule::ATTR_LENGTH,
            "m.graph.attrs.dltype",
            in_graph("/attrs/dltype/1", json!(["int8"])),
        ),
        Case::new(
            "other_attr",
            &rule::ATTR_OTHER,
            "m.graph.attrs.other",
            in_graph("/attrs/other", json!(["list_int", [1]])),
        ),
        Case::new(
            "dtype_five_bits",
            &rule::DATA_TYPE,
            "m.graph.attrs.dltype[0]",
            in_graph("/attrs/dltype/1/0", json!("float5")),
        ),
        Case::new("size_negative", &rule::SHAPE, "m.graph.attrs.shape[0]", in_graph("/attrs/shape/1/0", json!([-1]))),
        Case::new(
            "size_overflow",
            &rule::SHAPE,
            "m.graph.attrs.shape[0]",
            in_graph("/attrs/shape/1/0", json!([1u64 << 62, 8])),
        ),
        Case::new("control_deps", &rule::CONTROL, "m.graph.nodes[2]", in_graph("/nodes/2/control_deps", json!([0]))),
        Case::new("flattened", &rule::FLATTEN, "m.graph.nodes[2]", in_graph("/nodes/2/attrs/flatten_data", json!("1"))),
        Case::new(
            "head_twice",
            &rule::HEAD_REPEATED,
            "m.graph.heads[1]",
            in_graph("/heads", json!([[2, 0, 0], [2, 0, 0]])),
        ),
        Case::new("no_outputs", &rule::NO_HEADS, "m.graph.heads", in_graph("/heads", json!([]))),
    ]
}

fn text() -> Vec<Case> {
    let twice = String::from_utf8(files()["metadata.json"].clone()).unwrap().replacen('{', "{\"version\": 5, ", 1);
    vec![
        Case::new("graph_cut_off", &rule::JSON, "m.graph", with(GRAPH, b"{\"nodes\": [")),
        Case::new("graph_deep", &rule::JSON, "m.graph", with(GRAPH, "[".repeat(100).as_bytes())),
        Case::new("key_twice", &rule::REPEATED, "metadata", with("metadata.json", twice.as_bytes())),
        Case::new("too_much", &rule::LIMITS, "metadata", good()).visits(20),
    ]
}

fn metadatas() -> Vec<Case> {
    vec![
        Case::new("target_number", &rule::METADATA_TYPE, "metadata.target", metadata("target", json!(1))),
        Case::new("version_eight", &rule::VERSION, "metadata.version", metadata("version", json!(8))),
        Case::new("version_text", &rule::VERSION, "metadata.version", metadata("version", json!("5"))),
        Case::new("no_memory", &rule::METADATA_MISSING, "metadata.memory", lacking("metadata.json", "memory")),
        Case::new("extra_key", &rule::METADATA_KEY, "metadata.extra", metadata("extra", json!(0))),
        Case::new("old_spelling", &rule::SPELLING, "metadata.runtimes", metadata("runtimes", json!(["graph"]))),
        Case::new("modules_early", &rule::MODULES, "metadata.modules", metadata("modules", json!({}))),
        Case::new("modules_absent", &rule::MODULES, "metadata.modules", metadata("version", json!(7))),
        Case::new(
            "module_misnamed",
            &rule::MODULE_NAME,
            "metadata.modules.k.model_name",
            modules(json!({"k": seventh()})),
        ),
        Case::new(
            "module_hyphen",
            &rule::MODULE_IDENTIFIER,
            "metadata.model_name",
            metadata("model_name", json!("m-1")),
        ),
        Case::new(
            "two_executors",
            &rule::EXECUTOR,
            "metadata.executors",
            metadata("executors", json!(["graph", "aot"])),
        ),
        Case::new("unknown_style", &rule::STYLE, "metadata.style", metadata("style", json!("half-model"))),
        Case::new(
            "no_time",
            &rule::DATETIME,
            "metadata.export_datetime",
            metadata("export_datetime", json!("yesterday")),
        ),
    ]
}

fn parameters() -> Vec<Case> {
    let mut two = params_file(&[param("p0"), param("p1")]).unwrap();
    let second = crate::hostile_data::position(&two, b"p1");
    two = patch(two, second, b"p0");
    let bytes = files()[PARAMS].clone();
    let longer = [bytes.clone(), vec![0; 3]].concat();
    vec![
        Case::new("params_magic", &rule::PARAMS_MAGIC, "m.params", in_params(0, &[0])),
        Case::new("tensor_magic", &rule::PARAMS_MAGIC, "m.params[0]", in_params(42, &[0])),
        Case::new("params_reserved", &rule::PARAMS_RESERVED, "m.params", in_params(8, &[1])),
        Case::new("params_short", &rule::PARAMS_SHORT, "m.params", with(PARAMS, &bytes[..bytes.len() - 5])),
        Case::new("params_name_long", &rule::PARAMS_SHORT, "m.params", in_params(24, &[255; 8])),
        Case::new("params_count", &rule::PARAMS_COUNT, "m.params", in_params(34, &[2])),
        Case::new("params_name", &rule::PARAMS_NAME, "m.params[0]", in_params(32, &[255])),
        Case::new("params_twice", &rule::PARAMS_REPEATED, "m.params[1]", with(PARAMS, &two)),
        Case::new("params_device", &rule::PARAMS_DEVICE, "m.params[0]", in_params(58, &[2])),
        Case::new("params_rank", &rule::PARAMS_SHAPE, "m.params[0]", in_params(66, &[255; 4])),
        Case::new("params_type", &rule::PARAMS_TYPE, "m.params[0]", in_params(71, &[0])),
        Case::new("params_size", &rule::PARAMS_SIZE, "m.params[0]", in_params(82, &[4])),
        Case::new("params_trailing", &rule::PARAMS_TRAILING, "m.params", with(PARAMS, &longer)),
    ]
}

fn storage() -> Vec<Case> {
    let devices = edited(GRAPH, |json| {
        json["attrs"]["storage_id"][1] = json!([0, 1, 1]);
        json["attrs"]["device_index"] = json!(["list_int", [1, 1, 2]]);
    });
    let large = edited(GRAPH, |json| json["attrs"]["shape"][1] = json!([[1u64 << 30], [2], [2]]));
    let sids = edited("metadata.json", |json| json["memory"]["sids"][0]["size_bytes"] = json!(4));
    vec![
        Case::new("storage_negative", &rule::STORAGE_ID, "m.graph.attrs.storage_id[0]", storages(json!([-1, 1, 2]))),
        Case::new("storage_devices", &rule::STORAGE_DEVICE, "m.graph.attrs.device_index[2]", devices),
        Case::new("storage_gap", &rule::STORAGE_SPARSE, "m.graph.attrs.storage_id", storages(json!([0, 1, 7]))),
        Case::new("overwritten", &rule::OVERWRITTEN, "m.graph.nodes[3].inputs[0]", overwritten()),
        Case::new("args_share", &rule::ARG_STORAGE, "m.graph.nodes[1]", storages(json!([0, 0, 1]))),
        Case::new("arg_written", &rule::ARG_WRITTEN, "m.graph.nodes[2]", storages(json!([0, 1, 0]))),
        Case::new("read_and_written", &rule::OVERLAP, "m.graph.nodes[2]", storages(json!([0, 1, 1]))),
        Case::new(
            "nop_of_two",
            &rule::RESERVED,
            "m.graph.nodes[2]",
            in_graph("/nodes/2/attrs/func_name", json!("__nop")),
        ),
        Case::new("sids_wrong", &rule::SIDS, "m.memory.sids[0]", sids),
        Case::new("much_memory", &rule::MEMORY_LIMIT, "m.graph", large),
    ]
}

fn compared() -> Vec<Case> {
    let header = "struct tvmgen_m_inputs { void* x; void* y; };\nstruct tvmgen_m_outputs { void* output; };\n";
    let table = "static const int64_t a_inputs_0_shape[1] = {3L};
        static const struct TVMTensorInfo a_inputs[1] = {{\"x\", a_inputs_0_shape, 1L, {2, 32, 1}}};
        static const struct TVMTensorInfo a_outputs[1] = {{\"output\", a_inputs_0_shape, 1L, {2, 32, 1}}};\n";
    let mut listed = module(5)["memory"].clone();
    listed["functions"]["main"][0]["inputs"] = json!({"x": {"size": 8, "dtype": "int64"}});
    let text = b"def @main(%a: Tensor[(2), float32], %w: Tensor[(2), float32]) {}";
    let renamed = with(PARAMS, &params_file(&[param("q0")]).unwrap());
    let square = in_graph("/attrs/shape/1/1", json!([1, 2]));
    vec![
        Case::new("param_missing", &rule::PARAM_MISSING, "m.graph.nodes[1]", renamed.clone()),
        Case::new("param_shape", &rule::PARAM_TYPE, "m.params[0]", square),
        Case::new("param_unused", &rule::PARAM_UNUSED, "m.params[0]", renamed),
        Case::new("header_other", &rule::INTERFACE, "m", with("codegen/host/include/tvmgen_m.h", header.as_bytes())),
        Case::new("table_other", &rule::INTERFACE, "m", with("codegen/host/src/m_lib1.c", table.as_bytes())),
        Case::new("metadata_other", &rule::INTERFACE, "m", metadata("memory", listed)),
        Case::new("relay_other", &rule::RELAY, "m", with("src/relay.txt", text)),
    ]
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let families = [archives(), code(), placed(), graphs(), text(), metadatas(), parameters(), storage(), compared()];
    families.into_iter().flatten().collect()
}
