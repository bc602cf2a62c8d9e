//! Files that come back byte for byte through JSON: those of the corpora, those nobody's writer made, and those that were
//! edited, which are laid out again when they no longer fit.

use std::fs;
use std::path::Path;

use edgepack::edit::{self, DiffOptions, Likeness, NewTensor, Opened, Package, diff};
use edgepack::format::pte::{Buffer, KernelTypes, TensorDataLocation};
use edgepack::format::row::Blob;
use edgepack::format::scalar::ScalarType;
use edgepack::format::tensor::{TensorBuf, TensorLayout, TensorView};
use edgepack_smith::Rng;
use edgepack_tests::files;
use serde_json::Value;

/// The JSON with the layout of a file.
fn dumped(file: &Opened) -> String {
    let mut package = file.package().unwrap();
    package.places = Some(Box::new(file.places(&package).unwrap()));
    package.origin = Some(file.origin(&package).unwrap());
    edit::dump(&package).unwrap()
}

fn built(json: &str) -> (Package<'static>, Vec<u8>) {
    let package = edit::build(json).unwrap();
    let bytes = package.to_bytes().unwrap();
    (package, bytes)
}

#[test]
fn every_file_comes_back_byte_for_byte() {
    let (mut count, mut other) = (0, 0);
    for path in files(&["pte", "ptd", "bpte"]) {
        let bytes = fs::read(&path).unwrap();
        let file = Opened::from_bytes(bytes.clone()).unwrap();
        let json = dumped(&file);
        let (package, found) = built(&json);
        let ready = package.ready().unwrap();
        assert_eq!(ready.unplaced(), None, "{}", path.display());
        assert!(found == bytes, "{}", path.display());
        assert_eq!(ready.likeness(package.origin.as_ref().unwrap()).unwrap(), Likeness::Bytes);

        // Without the layout the content is the same, and it is known whether the bytes are.
        let mut package = file.package().unwrap();
        package.origin = Some(file.origin(&package).unwrap());
        let package = edit::build(&edit::dump(&package).unwrap()).unwrap();
        let likeness = package.ready().unwrap().likeness(package.origin.as_ref().unwrap()).unwrap();
        let same = package.to_bytes().unwrap() == bytes;
        assert_eq!(likeness, if same { Likeness::Bytes } else { Likeness::Content }, "{}", path.display());
        other += usize::from(!same);
        count += 1;
    }
    println!("{count} of {count} files byte for byte; without the layout {} of {count}", count - other);
    assert!(count > 90, "only {count} files");
}

const EXACT: DiffOptions = DiffOptions { rtol: 0.0, atol: 0.0, exact: true };

fn model(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus").join(name)).unwrap()
}

#[test]
fn edits_that_fit_change_their_bytes_alone() {
    let bytes = model("models/mlp_portable.pte");
    let json = dumped(&Opened::from_bytes(bytes.clone()).unwrap());
    let renamed =
        json.replace("\"forward\"", "\"onwards\"").replace("\"data_buffer_idx\": 1", "\"data_buffer_idx\": 2");
    let (package, found) = built(&renamed);
    assert_eq!(package.ready().unwrap().unplaced(), None);
    assert_eq!(found.len(), bytes.len());
    let changed = found.iter().zip(&bytes).filter(|(a, b)| a != b).count();
    // Six letters of the name, one byte of an index.
    assert_eq!(changed, "forward".bytes().zip("onwards".bytes()).filter(|(a, b)| a != b).count() + 1);
    let again = Opened::from_bytes(found).unwrap();
    assert!(diff(&again.package().unwrap(), &package, &EXACT).unwrap().is_empty());
}

#[test]
fn edits_that_do_not_fit_are_laid_out_again_with_a_reason() {
    let file = Opened::from_bytes(model("models/mlp_portable.pte")).unwrap();
    let json = dumped(&file);
    let longer = "\"much_longer_than_before_and_over_what_is_behind_it\"";
    let edits: [(&str, &str, &str); 5] = [
        ("\"forward\"", longer, "behind the buffer"),
        ("\"aten::addmm\"", longer, "cover each other"),
        ("\"named_data\": null", "\"named_data\": []", "objects"),
        ("\"version\": 0,\n    \"execution_plan\"", "\"version\": 3,\n    \"execution_plan\"", "no place for a field"),
        ("\"segments\": 1936,", "\"segments\": 1937,", "1937"),
    ];
    for (from, to, reason) in edits {
        assert!(json.contains(from), "{from}");
        let package = edit::build(&json.replacen(from, to, 1)).unwrap();
        let ready = package.ready().unwrap();
        let unplaced = ready.unplaced().unwrap_or_else(|| panic!("{from} to {to} was not laid out again"));
        assert!(unplaced.contains(reason), "{from} to {to}: {unplaced}");
        assert_eq!(ready.likeness(package.origin.as_ref().unwrap()).unwrap() == Likeness::Content, reason == "1937");
        let without = Package { places: None, ..package.clone() };
        assert_eq!(package.to_bytes().unwrap(), without.to_bytes().unwrap());
        let again = Opened::from_bytes(package.to_bytes().unwrap()).unwrap();
        assert!(diff(&again.package().unwrap(), &package, &EXACT).unwrap().is_empty());
    }
}

/// Whatever a document says about places: the file has the content of its rows, or is not valid, or is refused.
#[test]
fn no_places_change_the_content() {
    let mut rng = Rng::new(21);
    let (mut placed, mut again, mut refused, mut invalid) = (0, 0, 0, 0);
    for name in
        ["models/mlp_portable.pte", "data/tensors.ptd", "bundled/mlp_two_cases.bpte", "models/cond_portable.pte"]
    {
        let file = Opened::from_bytes(model(name)).unwrap();
        let document: Value = serde_json::from_str(&dumped(&file)).unwrap();
        let original = file.package().unwrap();
        for _ in 0..500 {
            let mut document = document.clone();
            for _ in 0..1 + rng.below(3) {
                change(&mut document["places"], &mut rng);
            }
            let Ok(package) = edit::build(&document.to_string()) else {
                refused += 1;
                continue;
            };
            let Ok(ready) = package.ready() else {
                refused += 1;
                continue;
            };
            *(if ready.unplaced().is_some() { &mut again } else { &mut placed }) += 1;
            let bytes = package.to_bytes().unwrap();
            assert_eq!(bytes.len() as u64, ready.len());
            if ready.verify().has_errors() {
                invalid += 1;
                continue;
            }
            let found = Opened::from_bytes(bytes).unwrap();
            assert!(diff(&found.package().unwrap(), &original, &EXACT).unwrap().is_empty(), "{name}");
        }
    }
    println!("{placed} at changed places, {again} laid out again, {refused} refused, {invalid} not valid");
    assert!(placed > 50 && again > 500 && refused > 20, "{placed} {again} {refused}");
}

/// Changes one number or one text of the places.
fn change(places: &mut Value, rng: &mut Rng) {
    let hex = |rng: &mut Rng| match rng.below(3) {
        0 => format!("{:x}", rng.below(6000)),
        1 => format!("{:x}", rng.edge()),
        _ => format!("{:x}", rng.below(1500) * 4),
    };
    match rng.below(8) {
        0 => {
            let key = *rng.pick(&["head", "file", "segments"]).unwrap();
            let by = rng.below(9) as i64 - 4;
            let number = places[key].as_u64().unwrap();
            places[key] = if rng.one_in(3) { rng.edge().into() } else { number.wrapping_add_signed(by).into() };
        }
        1 => {
            let at = hex(rng);
            places["rest"].as_object_mut().unwrap().insert(at, "AQID".into());
        }
        kind => {
            let list = places[if kind < 4 { "vtables" } else { "objects" }].as_array_mut().unwrap();
            let line = rng.below(list.len());
            let text = list[line].as_str().unwrap().to_owned();
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let at = rng.below(words.len());
            let new = hex(rng);
            words[at] = match words[at].clone() {
                word if word.starts_with('t') => format!("t{new}/{}", word.split_once('/').unwrap().1),
                word if word.ends_with(':') => format!("{new}:"),
                word if kind >= 4 => format!("{}{new}", &word[..1]),
                _ => new,
            };
            list[line] = words.join(" ").into();
        }
    }
}

/// The first constant of a program, and zeros in its place.
fn constant(package: &Package<'_>) -> Option<(String, TensorBuf)> {
    for plan in package.program()?.execution_plan.as_ref()?.iter() {
        for value in plan.unwrap().values.iter().flat_map(|values| values.iter()) {
            let Some(KernelTypes::Tensor(tensor)) = value.unwrap().val else { continue };
            let info = tensor.extra_tensor_info.clone().unwrap_or_default();
            if tensor.allocation_info.is_some()
                || tensor.data_buffer_idx == 0
                || info.location != TensorDataLocation::SEGMENT
            {
                continue;
            }
            let name = info.fully_qualified_name.as_deref().filter(|name| !name.is_empty());
            let name = name.map_or_else(|| format!("constant.{}", tensor.data_buffer_idx), str::to_owned);
            let sizes: Vec<usize> =
                tensor.sizes.iter().flat_map(|sizes| sizes.iter()).map(|size| size as usize).collect();
            let layout = TensorLayout::contiguous(tensor.scalar_type, &sizes).unwrap();
            let bytes = vec![0; layout.byte_len()];
            return Some((name, TensorBuf::from_bytes(layout, bytes).unwrap()));
        }
    }
    None
}

/// Changes the first constant of a program in place, and compares with what `patch` makes of it; `false` if there is none.
fn changes_in_place(mut bytes: Vec<u8>, what: &str) -> bool {
    let file = Opened::from_bytes(bytes.clone()).unwrap();
    let package = file.package().unwrap();
    let Some((name, zeros)) = constant(&package) else { return false };
    let tensor = TensorView::new(zeros.layout().clone(), zeros.data()).unwrap();
    let new = [NewTensor { name: &name, tensor }];
    let changes = edit::patch_in_place(&file, &package, &new);
    // Of a constant that methods see with different sizes both say that it cannot be.
    let Ok(patched) = edit::patch(package, &new) else {
        assert!(changes.is_err(), "{what}");
        return false;
    };
    for change in changes.unwrap() {
        bytes[change.at as usize..][..change.bytes.len()].copy_from_slice(&change.bytes);
    }
    let changed = Opened::from_bytes(bytes).unwrap();
    assert!(diff(&changed.package().unwrap(), &patched, &EXACT).unwrap().is_empty(), "{what}");
    true
}

#[test]
fn tensors_change_in_place_and_nothing_else_does() {
    let mut count = 0;
    for path in files(&["pte"]) {
        count += usize::from(changes_in_place(fs::read(&path).unwrap(), &path.display().to_string()));
    }
    println!("{count} programs changed in place");
    assert!(count > 30, "{count}");
}

#[test]
fn constants_in_the_flatbuffer_change_in_place() {
    let file = Opened::from_bytes(model("models/mlp_portable.pte")).unwrap();
    let mut package = file.package().unwrap();
    let segment = package.segments.remove(0);
    let segment = segment.read().unwrap();
    let program = package.program_mut().unwrap();
    let offsets: Vec<u64> = program.constant_segment.take().unwrap().offsets.unwrap().iter().collect();
    let ends = offsets.iter().skip(1).chain([&1936]);
    let buffer = |(start, end): (&u64, &u64)| Buffer {
        storage: Some(Blob(segment[*start as usize..*end as usize].to_vec().into())),
    };
    program.constant_buffer = Some(offsets.iter().zip(ends).map(buffer).collect::<Vec<_>>().into());
    program.segments = None;
    package.layout.header = None;
    assert!(changes_in_place(package.to_bytes().unwrap(), "constants in the flatbuffer"));
}

#[test]
fn a_tensor_that_is_missing_is_not_changed_in_place() {
    let file = Opened::from_bytes(model("data/tensors.ptd")).unwrap();
    let package = file.package().unwrap();
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[1]).unwrap();
    let tensor = TensorView::new(layout, &[0; 4]).unwrap();
    let missing = edit::patch_in_place(&file, &package, &[NewTensor { name: "missing", tensor }]).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
}
