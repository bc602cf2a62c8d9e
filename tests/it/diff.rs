//! Differences between programs: what is planted is found in a few lines, indices say nothing, and nothing that differs
//! is called equal.
//!
//! `EDGEPACK_CORPUS` names a larger corpus of the same layout.

use std::path::Path;

use edgepack::edit::{self, Comparison, DiffOptions, DifferenceKind, NewTensor, Opened, Package, compare, patch};
use edgepack_builder::NamedDataStore;
use edgepack_builder::ptd::{DataFormat, data_file};
use edgepack_format::tensor::TensorView;
use edgepack_tests::files;
use serde_json::{Value, json};

const CONTENT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: false };
const EXACT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: true };

/// Numbers that look random and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % count.max(1)
    }

    fn order(&mut self, count: usize) -> Vec<i64> {
        let mut order: Vec<i64> = (0..count as i64).collect();
        for at in (1..count).rev() {
            order.swap(at, self.below(at + 1));
        }
        order
    }
}

fn document(path: &Path) -> Value {
    let file = Opened::open(path).unwrap();
    serde_json::from_str(&edit::dump(&file.package().unwrap()).unwrap()).unwrap()
}

fn compared(a: &Value, b: &Value) -> Comparison {
    let (a, b) = (edit::build(&a.to_string()).unwrap(), edit::build(&b.to_string()).unwrap());
    compare(&a, &b, &CONTENT).unwrap()
}

fn plan(document: &mut Value) -> &mut Value {
    &mut document["program"]["execution_plan"][0]
}

fn instructions(document: &mut Value) -> &mut Vec<Value> {
    plan(document)["chains"][0]["instructions"].as_array_mut().unwrap()
}

fn each_index(plan: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    let all = |list: &mut Value, change: &mut dyn FnMut(&mut Value)| {
        list.as_array_mut().into_iter().flatten().for_each(change);
    };
    for value in plan["values"].as_array_mut().unwrap() {
        for kind in ["IntList", "TensorList", "OptionalTensorList"] {
            if let Some(list) = value.pointer_mut(&format!("/val/{kind}/items")) {
                all(list, change);
            }
        }
    }
    for name in ["inputs", "outputs"] {
        all(&mut plan[name], change);
    }
    for chain in plan["chains"].as_array_mut().into_iter().flatten() {
        for name in ["inputs", "outputs"] {
            if let Some(list) = chain.get_mut(name) {
                all(list, change);
            }
        }
        for instruction in chain["instructions"].as_array_mut().into_iter().flatten() {
            for call in instruction["instr_args"].as_object_mut().into_iter().flatten().map(|(_, call)| call) {
                if let Some(list) = call.get_mut("args") {
                    all(list, change);
                }
                for name in ["move_from", "move_to", "cond_value_index", "value_index"] {
                    call.get_mut(name).into_iter().for_each(&mut *change);
                }
            }
        }
    }
}

/// Gives every value of a method another index.
fn renumber(plan: &mut Value, order: &[i64]) {
    let old = plan["values"].as_array().unwrap().clone();
    let mut new = old.clone();
    for (value, index) in old.into_iter().zip(order) {
        new[*index as usize] = value;
    }
    plan["values"] = new.into();
    each_index(plan, &mut |index| {
        if let Some(known) = index.as_i64().and_then(|index| order.get(usize::try_from(index).ok()?)) {
            *index = (*known).into();
        }
    });
}

fn programs() -> Vec<std::path::PathBuf> {
    let mut programs = files(&["pte"]);
    // Large ones take long as JSON in an unoptimised build.
    programs.retain(|path| path.metadata().is_ok_and(|file| file.len() < 200_000));
    programs
}

#[test]
fn a_file_is_what_it_is() {
    let mut count = 0;
    for path in files(&["pte", "ptd", "bpte"]) {
        let file = Opened::open(&path).unwrap();
        let package = file.package().unwrap();
        let found = compare(&package, &package, &CONTENT).unwrap();
        assert_eq!(found, Comparison::default(), "{}", path.display());
        count += 1;
    }
    assert!(count > 90, "only {count} files");
}

/// Values in any order, and operators in any order, are the same program.
#[test]
fn indices_are_no_difference() {
    let (mut count, mut values) = (0, 0);
    let mut random = Random(1);
    for path in programs() {
        let left = document(&path);
        let mut right = left.clone();
        for plan in right["program"]["execution_plan"].as_array_mut().unwrap() {
            let order = random.order(plan["values"].as_array().unwrap().len());
            renumber(plan, &order);
            values += order.iter().zip(0..).filter(|(new, old)| **new != *old).count();
            let operators = plan["operators"].as_array().cloned().unwrap_or_default();
            plan["operators"] = operators.iter().rev().cloned().collect::<Vec<_>>().into();
            for chain in plan["chains"].as_array_mut().unwrap() {
                for instruction in chain["instructions"].as_array_mut().into_iter().flatten() {
                    if let Some(index) = instruction.pointer_mut("/instr_args/KernelCall/op_index") {
                        *index = (operators.len() as i64 - 1 - index.as_i64().unwrap()).into();
                    }
                }
            }
        }
        let found = compared(&left, &right);
        assert_eq!(found.differences, [], "{}", path.display());
        assert!(found.renumbered > 0 || count > 0, "{}", path.display());
        count += 1;
    }
    println!("{count} programs with {values} values in another order are the same");
    assert!(count > 50 && values > 1000);
}

/// An instruction more, less, or elsewhere is told in a few lines, whatever its place and however values are numbered.
#[test]
fn what_is_planted_is_told_in_a_few_lines() {
    let (mut count, mut most, mut all) = (0, 0, 0);
    let mut random = Random(2);
    for path in programs() {
        let left = document(&path);
        let length = instructions(&mut left.clone()).len();
        if length < 3 {
            continue;
        }
        for place in [0, length / 2, length - 1] {
            let mut more = left.clone();
            let new = json!({ "val": { "Int": { "int_val": 987_654 } } });
            let values = plan(&mut more)["values"].as_array_mut().unwrap();
            values.push(new);
            let index = values.len() as i64 - 1;
            instructions(&mut more).insert(place, json!({ "instr_args": { "FreeCall": { "value_index": index } } }));
            retarget(&mut more, |to| if to > place as i64 { to + 1 } else { to });
            let order = random.order(index as usize + 1);
            renumber(plan(&mut more), &order);
            for (a, b) in [(&left, &more), (&more, &left)] {
                let found = compared(a, b).differences;
                assert!(!found.is_empty(), "{}", path.display());
                assert!(found.iter().any(|one| one.path.contains("instructions")), "{found:#?}");
                (most, all, count) = (most.max(found.len()), all + found.len(), count + 1);
                assert!(found.len() <= 3, "{} at {place}: {found:#?}", path.display());
            }
        }
        let mut moved = left.clone();
        let list = instructions(&mut moved);
        if list.iter().any(|one| one["instr_args"].get("JumpFalseCall").is_some()) {
            continue;
        }
        let one = list.remove(0);
        list.push(one);
        let found = compared(&left, &moved).differences;
        assert!(!found.is_empty() && found.len() <= 8, "{}: {found:#?}", path.display());
        assert!(found.iter().any(|one| one.path.contains('→') || one.path.contains("instructions")), "{found:#?}");
    }
    println!("{count} instructions planted: {all} differences, {most} at most");
    assert!(count > 100, "only {count}");
}

fn retarget(document: &mut Value, to: impl Fn(i64) -> i64) {
    for instruction in instructions(document) {
        if let Some(place) = instruction.pointer_mut("/instr_args/JumpFalseCall/destination_instruction") {
            *place = to(place.as_i64().unwrap()).into();
        }
    }
}

/// Any number or word of the rows of a method that is another one is a difference.
#[test]
fn no_change_of_rows_is_called_equal() {
    let (mut count, mut random) = (0, Random(3));
    for path in programs() {
        let left = document(&path);
        let original = edit::build(&left.to_string()).unwrap();
        let mut leaves = Vec::new();
        leaves_of(&left["program"]["execution_plan"], "/program/execution_plan".into(), &mut leaves);
        // Places of bytes are none.
        let places = ["/data_buffer_idx", "/mutable_data_segments_idx", "/processed/", "/location"];
        leaves.retain(|leaf| !places.iter().any(|place| leaf.contains(place)));
        for _ in 0..12 {
            let leaf = &leaves[random.below(leaves.len())];
            let mut right = left.clone();
            let value = right.pointer_mut(leaf).unwrap();
            match value {
                Value::Bool(flag) => *flag = !*flag,
                Value::String(text)
                    if leaf.ends_with("/name") || leaf.ends_with("/overload") || leaf.ends_with("/id") =>
                {
                    text.push('x');
                }
                Value::Number(_) if leaf.ends_with("/sizes/0") || leaf.contains("_val") => {
                    *value = (value.as_f64().unwrap() as i64 + 1).into();
                }
                Value::Number(number) if number.is_i64() && leaf.contains("/args/") => {
                    let count = left["program"]["execution_plan"][0]["values"].as_array().unwrap().len();
                    *value = (random.below(count) as i64).into();
                }
                Value::Number(number) if number.is_i64() => *value = (number.as_i64().unwrap() ^ 1).into(),
                _ => continue,
            }
            let value = value.clone();
            let Ok(built) = edit::build(&right.to_string()) else { continue };
            if compare(&original, &built, &EXACT).unwrap().differences.is_empty()
                || is_the_same_number(&left, leaf, &value)
            {
                continue;
            }
            match compare(&original, &built, &CONTENT) {
                Ok(found) => assert!(!found.differences.is_empty(), "{} {leaf}: {value}", path.display()),
                // The bytes of a tensor that grew are not there.
                Err(error) => assert!(error.to_string().contains("execution_plan"), "{error}"),
            }
            count += 1;
        }
    }
    println!("{count} changes of a row are differences");
    assert!(count > 300, "only {count}");
}

fn leaves_of(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| leaves_of(value, format!("{path}/{name}"), out))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| leaves_of(value, format!("{path}/{index}"), out));
        }
        Value::Null => {}
        _ => out.push(path),
    }
}

/// Returns whether an argument or an item of a list is another value that holds the same number or the same numbers.
fn is_the_same_number(left: &Value, leaf: &str, new: &Value) -> bool {
    let Some((method, _)) = leaf.strip_prefix("/program/execution_plan/").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let is_index = leaf.contains("/args/") || leaf.contains("List/items/");
    let values = left.pointer(&format!("/program/execution_plan/{method}/values")).unwrap();
    let value = |index: &Value| values.get(index.as_u64()? as usize);
    let resolved = |index: &Value| {
        let mut found = value(index)?.clone();
        if let Some(Value::Array(items)) = found.pointer_mut("/val/IntList/items") {
            items.iter_mut().for_each(|item| *item = value(item).cloned().unwrap_or_default());
        }
        Some(found)
    };
    let (old, new) = (left.pointer(leaf).and_then(resolved), resolved(new));
    is_index && old == new && old.is_some_and(|old| old.pointer("/val/Tensor").is_none())
}

/// Exports of one model with other weights differ in bytes alone, and those are named.
#[test]
fn other_weights_are_no_other_structure() {
    let mut count = 0;
    for path in programs() {
        let file = Opened::open(&path).unwrap();
        let package = file.package().unwrap();
        // Initial values that are given at run time have no bytes to name.
        let Ok(mut tensors) = edit::named(&package) else { continue };
        tensors.retain(|one| one.layout.as_ref().is_some_and(|layout| layout.byte_len() > 0));
        // Bytes with two names can be replaced by one alone.
        let bytes: Vec<Vec<u8>> =
            tensors.iter().map(|one| one.content.read().unwrap().iter().map(|byte| byte ^ 1).collect()).collect();
        let new: Vec<NewTensor<'_>> = tensors
            .iter()
            .zip(&bytes)
            .filter_map(|(one, bytes)| {
                Some(NewTensor { name: &one.name, tensor: TensorView::new(one.layout.clone()?, bytes).ok()? })
            })
            .collect();
        let Ok(patched) = patch(package.clone(), &new) else { continue };
        let found = compare(&package, &patched, &CONTENT).unwrap();
        assert_eq!(found.renumbered, 0);
        for one in &found.differences {
            assert_eq!(one.kind, DifferenceKind::Content, "{}: {one:?}", path.display());
            assert!(one.path.starts_with("constants[\"") || one.path.starts_with("initial_values"), "{one:?}");
        }
        let named = found.differences.iter().filter(|one| !one.path.starts_with("initial_values of")).count();
        assert!(named <= new.len(), "{}", path.display());
        count += usize::from(!found.differences.is_empty());
    }
    println!("{count} programs with other weights differ in bytes alone");
    assert!(count > 20, "only {count}");
}

/// Programs that several releases of the exporter made of one model differ in no more than what the exporter does
/// otherwise.
#[test]
fn releases_differ_in_a_few_lines() {
    let all = files(&["pte"]);
    let (mut count, mut most) = (0, 0);
    for path in &all {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Some((model, _)) = name.split_once("_legacy_") else { continue };
        for other in &all {
            let other_name = other.file_stem().unwrap().to_string_lossy();
            if other_name != model && !other_name.starts_with(&format!("{model}_legacy_")) {
                continue;
            }
            let (a, b) = (Opened::open(path).unwrap(), Opened::open(other).unwrap());
            let found = compare(&a.package().unwrap(), &b.package().unwrap(), &CONTENT).unwrap();
            println!("{name} {other_name}: {} differences", found.differences.len());
            (count, most) = (count + 1, most.max(found.differences.len()));
        }
    }
    println!("{count} pairs of releases, {most} differences at most");
    assert!(most <= 20, "{most}");
}

fn data(entries: &[(&str, u8)]) -> Vec<u8> {
    let mut store = NamedDataStore::new();
    for (key, byte) in entries {
        store.add(key, vec![*byte; 40], 16, None).unwrap();
    }
    data_file(&store, DataFormat::FlatTensor, 128).unwrap().to_bytes().unwrap()
}

fn compared_data(a: &[(&str, u8)], b: &[(&str, u8)]) -> Vec<(String, String, String)> {
    let (a, b) = (Opened::from_bytes(data(a)).unwrap(), Opened::from_bytes(data(b)).unwrap());
    let found = compare(&a.package().unwrap(), &b.package().unwrap(), &CONTENT).unwrap();
    found.differences.into_iter().map(|one| (one.path, one.left, one.right)).collect()
}

#[test]
fn keys_are_matched_by_name_then_by_content() {
    let three = [("a", 1), ("b", 2), ("c", 3)];
    assert_eq!(compared_data(&three, &[("c", 3), ("a", 1), ("b", 2)]), []);
    let text = |path: &str, left: &str, right: &str| (path.to_owned(), left.to_owned(), right.to_owned());
    // Renamed.
    let renamed = text("named_data[\"b\"]", "key \"b\"", "key \"z\", with the same bytes");
    assert_eq!(compared_data(&three, &[("a", 1), ("z", 2), ("c", 3)]), [renamed]);
    // Other bytes.
    let other = text("named_data[\"b\"], byte 0 and 39 more", "0x02", "0x09");
    assert_eq!(compared_data(&three, &[("a", 1), ("b", 9), ("c", 3)]), [other]);
    // Other bytes by another key.
    let both = text("named_data[\"b\"→\"z\"], byte 0 and 39 more", "0x02", "0x09");
    assert_eq!(compared_data(&three, &[("a", 1), ("z", 9), ("c", 3)]), [both]);
    // Added.
    let added = text("named_data[\"d\"]", "absent", "40 bytes");
    assert_eq!(compared_data(&three, &[("a", 1), ("b", 2), ("c", 3), ("d", 4)]), [added]);
}

/// Long methods that have everything and nothing in common: nothing is compared with everything else, which would not end.
#[test]
fn long_methods_are_compared_whatever_they_share() {
    let program = |count: usize, order: &dyn Fn(usize) -> usize| -> Value {
        let values: Vec<Value> = (0..count).map(|at| json!({ "val": { "Int": { "int_val": at % 3 } } })).collect();
        let calls: Vec<Value> = (0..count)
            .map(|at| {
                let args: Vec<usize> = (0..3).map(|arg| (order(at) + arg) % count).collect();
                json!({ "instr_args": { "KernelCall": { "op_index": order(at) % 2, "args": args } } })
            })
            .collect();
        json!({ "name": "m", "values": values, "inputs": [], "outputs": [], "chains": [{ "instructions": calls }],
            "operators": [{ "name": "a" }, { "name": "b" }] })
    };
    let package = |plan: Value| -> Package<'static> {
        let layout = json!({ "header": null, "segment_alignment": 128, "data_alignment": 16 });
        let document =
            json!({ "schema": "edgepack/dump/1", "layout": layout, "program": { "execution_plan": [plan] } });
        edit::build(&document.to_string()).unwrap()
    };
    let count = 20_000;
    let mut random = Random(count as u64);
    let shuffled = random.order(count);
    let a = package(program(count, &|at| at));
    for order in [&(|at| count - 1 - at) as &dyn Fn(usize) -> usize, &|at| shuffled[at] as usize, &|_| 0] {
        let found = compare(&a, &package(program(count, order)), &CONTENT).unwrap();
        assert!(!found.differences.is_empty());
    }
}
