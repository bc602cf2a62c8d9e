//! Edge TPU packages end to end: every field is built, read, shown and dumped; outputs are taken apart as the format
//! defines it, element by element; options and models come back; a device of software sees the right bytes in order.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use edgepack::edit::{self, DiffOptions, Opened};
use edgepack_builder::darwinn::SigningKey;
use edgepack_builder::tflite::{OptionValue, custom_options, embed, rewrite_options, wrap};
use edgepack_executor::darwinn::{
    Buffer, Chip, Extraction, NoDevice, Output, RunError, Runner, Seen, Simulator, TensorBytes,
};
use edgepack_format::darwinn::{
    AnyLayer, DataType, Executable, Layer, MultiExecutable, OutputLayer, OutputLayout, OutputShapeInfo, Package,
    PackageRef, Range, TensorLayout, TensorShape,
};
use edgepack_format::limits::Limits;
use edgepack_format::row::Table as _;
use edgepack_format::tflite::{CustomOptions, ModelRef};
use edgepack_format::wire::Table;
use edgepack_loader::{PublicKey, Registry};
use edgepack_tests::edgetpu::{document, made, splitmix};
use edgepack_tests::fields::{all, told, written};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

/// A folder that is gone when the test is over.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = env::temp_dir().join(format!("edgepack-edgetpu-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder was made");
    }
}

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32]).unwrap()
}

/// Both packages in which, together, every field is set.
fn complete() -> [Vec<u8>; 2] {
    let one = made::complete(&key());
    [made::several(&one, 2), one]
}

fn parse(bytes: &[u8]) -> PackageRef<'_> {
    PackageRef::parse(bytes, &Limits::DEFAULT).unwrap()
}

fn every_field() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    [Package::DESC, MultiExecutable::DESC, Executable::DESC].into_iter().for_each(|desc| all(desc, &mut fields));
    fields
}

#[track_caller]
fn assert_complete(seen: &BTreeSet<String>, what: &str) {
    let missing: Vec<_> = every_field().difference(seen).cloned().collect();
    assert!(missing.is_empty(), "{what} lacks {missing:?}");
}

#[test]
fn every_field_is_built_and_read() {
    let mut seen = BTreeSet::new();
    for bytes in complete() {
        written(Table::root(&bytes).unwrap(), Package::DESC, &mut seen);
        let package = parse(&bytes);
        for package in [&package].into_iter().chain(package.chips()) {
            if package.multi_executable().is_some() {
                let multi = Table::root(package.multi_executable_bytes()).unwrap();
                written(multi, MultiExecutable::DESC, &mut seen);
            }
            for executable in package.executables() {
                written(Table::root(executable.bytes()).unwrap(), Executable::DESC, &mut seen);
            }
        }
    }
    assert_complete(&seen, "what the builder writes");
    assert!(seen.len() > 75, "{}", seen.len());
    let [_, one] = complete();
    assert_eq!(*parse(&one).executables()[0].row(), made::everything());
}

#[test]
fn every_field_is_shown() {
    let folder = Folder::new("shown");
    let (mut seen, mut text) = (BTreeSet::new(), String::new());
    for (index, bytes) in complete().iter().enumerate() {
        let path = folder.0.join(format!("{index}.dwn"));
        fs::write(&path, bytes).unwrap();
        let shown = document(&["inspect".as_ref(), "--all".as_ref(), "--json".as_ref(), path.as_os_str()]).unwrap();
        told(&shown["tables"], Package::DESC, &mut seen);
        for inner in shown["inner_tables"].as_array().unwrap() {
            for desc in [Package::DESC, MultiExecutable::DESC, Executable::DESC] {
                if desc.fields.iter().all(|field| inner.get(field.name).is_some()) {
                    told(inner, desc, &mut seen);
                }
            }
        }
        text += &edgepack_tests::edgetpu::report(&["inspect".as_ref(), "--all".as_ref(), path.as_os_str()]);
    }
    assert_complete(&seen, "`inspect --all --json`");
    for field in every_field() {
        let name = field.split(['.', ':']).next_back().unwrap();
        assert!(text.contains(name), "`inspect --all` does not say {field}");
    }
}

#[test]
fn every_field_is_dumped_and_built_again() {
    fn package(value: &Value, seen: &mut BTreeSet<String>) {
        told(&value["row"], Package::DESC, seen);
        if let Some(executables) = value["executables"].as_array() {
            seen.extend(
                ["Package.serialized_multi_executable", "MultiExecutable.serialized_executables"].map(str::to_owned),
            );
            executables.iter().for_each(|row| told(row, Executable::DESC, seen));
        }
        if let Some(chips) = value["chips"].as_array() {
            seen.extend(["Package.multi_chip_package", "SerializedPackage.serialized_package"].map(str::to_owned));
            chips.iter().for_each(|chip| package(chip, seen));
        }
    }
    let mut seen = BTreeSet::new();
    for bytes in complete() {
        let opened = Opened::from_bytes(bytes.clone()).unwrap();
        let json = edit::dump(&opened.package().unwrap()).unwrap();
        package(&serde_json::from_str::<Value>(&json).unwrap()["package"], &mut seen);
        // Bytes that our builder wrote come back unchanged.
        assert!(edit::build(&json).unwrap().to_bytes().unwrap() == bytes);
    }
    assert_complete(&seen, "a dump");
}

#[test]
fn models_and_small_packages_come_back_byte_for_byte() {
    let package = made::pair(3, 128, 64);
    for bytes in [wrap(&package).unwrap(), package, made::several(&made::pair(5, 64, 64), 3)] {
        let opened = Opened::from_bytes(bytes.clone()).unwrap();
        let rebuilt = edit::build(&edit::dump(&opened.package().unwrap()).unwrap()).unwrap();
        assert!(rebuilt.to_bytes().unwrap() == bytes);
    }
}

#[test]
fn what_grows_in_a_dump_moves_to_the_end() {
    let model = wrap(&made::pair(3, 128, 64)).unwrap();
    let opened = Opened::from_bytes(model.clone()).unwrap();
    let mut changed = opened.package().unwrap();
    let edit::Root::Model(parts) = &mut changed.root else { panic!("a model") };
    let executables = parts.packages[0].executables.as_mut().unwrap();
    executables[1].parameters = Some(edgepack_format::row::Blob(vec![1; 5000].into()));
    let bytes = changed.to_bytes().unwrap();
    assert!(bytes.len() > model.len() + 5000);
    let again = Opened::from_bytes(bytes).unwrap();
    let found = edit::diff(&opened.package().unwrap(), &again.package().unwrap(), &DiffOptions::default()).unwrap();
    let paths: Vec<_> = found.iter().map(|one| one.path.as_str()).collect();
    assert!(paths.contains(&"packages[0].executables[1].parameters"), "{paths:?}");
    assert!(paths.iter().all(|path| path.contains("parameters") || path.starts_with("around")), "{paths:?}");
}

#[test]
fn signatures_are_checked_and_void_after_a_change() {
    let [_, bytes] = complete();
    let public = || PublicKey::from_pem(&key().public_pem().unwrap()).unwrap();
    assert!(public().check(&parse(&bytes)).unwrap());
    assert!(Registry::demanding(vec![public()]).register(&bytes).is_ok());
    // The last byte of the parameters that are cached.
    let mut changed = bytes.clone();
    let at = changed.iter().rposition(|byte| *byte == 7).unwrap();
    changed[at] = 8;
    assert!(public().check(&parse(&changed)).is_err());
    assert!(Registry::demanding(vec![public()]).register(&changed).is_err());
    assert!(Registry::new().register(&changed).is_ok());
    let other = SigningKey::from_bytes(&[8; 32]).unwrap();
    assert!(PublicKey::from_pem(&other.public_pem().unwrap()).unwrap().check(&parse(&bytes)).is_err());
}

#[test]
fn a_package_for_several_chips_is_read_and_not_registered() {
    let [several, _] = complete();
    assert_eq!(parse(&several).chips().len(), 2);
    let error = Registry::new().register(&several).unwrap_err();
    assert!(error.to_string().contains("chip"), "{error}");
}

/// The host's whole side on a device of software: batch entries that do not fill up, executions, signs, tiles, slices.
#[test]
fn a_device_is_given_the_right_bytes_in_order() {
    let [_, bytes] = complete();
    let package = parse(&bytes);
    let layers = package.executables()[0].row().output_layers.clone().unwrap();
    let registration = Registry::new().register(&bytes).unwrap();
    for extraction in [Extraction::Hints, Extraction::Instructions] {
        let chip = Chip::new(Simulator::new().with_extraction(extraction).recording());
        let answer = |name: &str, batch: usize, len| splitmix(name.len() as u64 + 10 * batch as u64, len);
        chip.with_device(|device| {
            device.compute(&registration, move |work| answer(work.output, work.batch, work.bytes));
        });
        let mut runner = Runner::new(&chip, &registration).unwrap();
        let entry = |first: u8| (first..first + 10).collect::<Vec<u8>>();
        let inputs = [TensorBytes { name: "x".into(), entries: vec![entry(0), entry(100), entry(200)] }];
        let outputs = runner.run(&inputs).unwrap();
        assert_eq!(outputs.len(), 2);
        for (tensor, layer) in outputs.iter().zip(layers.iter()) {
            let layer = layer.unwrap();
            assert_eq!(tensor.entries.len(), 3);
            for (index, have) in tensor.entries.iter().enumerate() {
                let bytes = answer(&tensor.name, index % 2, if tensor.name == "y" { 40 } else { 16 });
                assert_eq!(*have, by_element(&layer, &bytes), "{} {index}", tensor.name);
            }
        }
        // Parameters go first and once; then two runs, the second half empty.
        let seen = chip.with_device(|device| device.seen().to_vec());
        let runs: Vec<_> = seen.iter().map(|seen| seen.program.executable).collect();
        assert_eq!(runs.first(), Some(&1));
        assert!(runs.is_sorted_by(|a, b| a >= b), "{runs:?}");
        if extraction == Extraction::Hints {
            let is_input = |seen: &&Seen| matches!(seen.transfer.moved(), Some((Buffer::Input(..), _)));
            let sent: Vec<_> = seen.iter().filter(is_input).collect();
            assert_eq!(sent.len(), 4);
            // Five elements and three bytes of padding, twice; the sign bits are flipped.
            assert_eq!(sent[0].bytes, [128, 129, 130, 131, 132, 0, 0, 0, 133, 134, 135, 136, 137, 0, 0, 0]);
            assert_eq!(sent[3].bytes, [0; 16]);
        }
    }
    let chip = Chip::new(NoDevice);
    let mut runner = Runner::new(&chip, &registration).unwrap();
    let Err(RunError::Device(error)) = runner.run(&[TensorBytes::new("x", [0; 10])]) else {
        panic!("there is no device")
    };
    assert!(error.to_string().contains("no Edge TPU"), "{error}");
}

/// The tensor of an output, element by element from the definition of the maps and slices.
fn by_element(layer: &Layer<'_>, device: &[u8]) -> Vec<u8> {
    let Some(AnyLayer::OutputLayer(output)) = &layer.any_layer else { panic!("an output") };
    let size = layer.data_type.size().unwrap();
    let [y_dim, x_dim, z_dim] = [layer.y_dim, layer.x_dim, layer.z_dim].map(|dim| dim as usize);
    let mut tensor = vec![0; y_dim * x_dim * z_dim * size];
    let mut put = |to: usize, from: usize| {
        for byte in 0..size {
            let flip = matches!(layer.data_type.0, 8 | 9) && byte + 1 == size;
            tensor[to * size + byte] = device[from + byte] ^ if flip { 0x80 } else { 0 };
        }
    };
    if let Some(info) = &output.shape_info {
        let ranges = |shape: &TensorShape<'_>| shape.dimension.as_ref().unwrap().iter().collect::<Vec<Range>>();
        let whole = ranges(layer.shape.as_ref().unwrap());
        let offsets = info.slice_offset.as_ref().unwrap();
        for (index, slice) in info.slice_layout.as_ref().unwrap().iter().enumerate() {
            let slice = slice.unwrap();
            let (part, stride) = (ranges(slice.shape.as_ref().unwrap()), slice.stride.as_ref().unwrap());
            let mut at: Vec<i32> = part.iter().map(|range| range.start).collect();
            'elements: loop {
                let (mut to, mut from) = (0, offsets.get(index).unwrap());
                for k in 0..at.len() {
                    to = to * (whole[k].end - whole[k].start + 1) + at[k] - whole[k].start;
                    from += size as i32 * stride.get(k).unwrap() * (at[k] - part[k].start);
                }
                put(to as usize, from as usize);
                for k in (0..at.len()).rev() {
                    at[k] += 1;
                    if at[k] <= part[k].end {
                        continue 'elements;
                    }
                    at[k] = part[k].start;
                }
                break;
            }
        }
        return tensor;
    }
    let maps = output.layout.as_ref().unwrap();
    let map =
        |list: &Option<edgepack_format::row::Scalars<'_, i32>>, at: usize| list.as_ref().unwrap().get(at).unwrap();
    for y in 0..y_dim {
        for x in 0..x_dim {
            let tile =
                map(&maps.y_coordinate_to_linear_tile_id_map, y) + map(&maps.x_coordinate_to_linear_tile_id_map, x);
            let row = map(&maps.y_coordinate_to_local_y_offset, y) * map(&maps.x_coordinate_to_local_y_row_size, x);
            let start = map(&maps.linearized_tile_byte_offset, tile as usize) + row;
            let start = start + map(&maps.x_coordinate_to_local_byte_offset, x);
            for z in 0..z_dim {
                put((y * x_dim + x) * z_dim + z, (start as usize + z) * size);
            }
        }
    }
    tensor
}

const TYPES: [DataType; 6] = [
    DataType::FIXED_POINT8,
    DataType::SIGNED_FIXED_POINT8,
    DataType::FIXED_POINT16,
    DataType::SIGNED_FIXED_POINT16,
    DataType::HALF,
    DataType::SINGLE,
];

fn output(data_type: DataType, [y_dim, x_dim, z_dim]: [usize; 3], output: OutputLayer<'static>) -> Layer<'static> {
    Layer {
        name: Some("y".into()),
        data_type,
        y_dim: y_dim as i32,
        x_dim: x_dim as i32,
        z_dim: z_dim as i32,
        any_layer: Some(AnyLayer::OutputLayer(output)),
        ..Layer::default()
    }
}

prop_compose! {
    /// An image in tiles: maps as compilers make them, with unused places between pixels, rows and tiles, or maps of
    /// any numbers at all.
    fn tiled()(
        y_dim in 1usize..9, x_dim in 2usize..9, z_dim in 1usize..7, tiles in 1i32..4, data_type in 0usize..6,
        wild: bool, gap in 0i32..5, seed: u64,
    ) -> Layer<'static> {
        let mut numbers = splitmix(seed, 4096).into_iter().map(i32::from);
        let mut random = |below: i32| numbers.next().unwrap_or(0) % below.max(1);
        let pixel = z_dim as i32 + gap;
        let edge = |count: usize| (0..count).map(|at| at as i32 * tiles / count as i32).collect::<Vec<i32>>();
        let (rows, columns) = (edge(y_dim), edge(x_dim));
        let within = |tiles: &[i32], at: usize| tiles[..at].iter().filter(|tile| **tile == tiles[at]).count() as i32;
        let width = |tile: i32| columns.iter().filter(|column| **column == tile).count() as i32;
        let (mut y_tile, mut x_tile, mut y_local, mut x_local, mut row_size) = (vec![], vec![], vec![], vec![], vec![]);
        for y in 0..y_dim {
            y_tile.push(if wild { random(tiles) } else { rows[y] * tiles });
            y_local.push(if wild { random(5) } else { within(&rows, y) });
        }
        for x in 0..x_dim {
            x_tile.push(if wild { random(tiles) } else { columns[x] });
            x_local.push(if wild { random(40) } else { within(&columns, x) * pixel });
            row_size.push(if wild { random(40) } else { width(columns[x]) * pixel + gap });
        }
        let offsets: Vec<i32> = (0..tiles * tiles + tiles).map(|tile| {
            if wild { random(200) } else { tile * (y_dim as i32 * (x_dim as i32 * pixel + gap)) }
        }).collect();
        let end = (0..y_dim * x_dim).map(|at| {
            let (y, x) = (at / x_dim, at % x_dim);
            offsets[(y_tile[y] + x_tile[x]) as usize] + y_local[y] * row_size[x] + x_local[x] + z_dim as i32
        }).max().unwrap_or(0).max((y_dim * x_dim * z_dim) as i32);
        let layout = OutputLayout {
            y_coordinate_to_linear_tile_id_map: Some(y_tile.into()),
            x_coordinate_to_linear_tile_id_map: Some(x_tile.into()),
            linearized_tile_byte_offset: Some(offsets.into()),
            x_coordinate_to_local_byte_offset: Some(x_local.into()),
            y_coordinate_to_local_y_offset: Some(y_local.into()),
            x_coordinate_to_local_y_row_size: Some(row_size.into()),
        };
        let data_type = TYPES[data_type];
        let size_bytes = end * data_type.size().unwrap() as i32;
        Layer {
            size_bytes,
            ..output(data_type, [y_dim, x_dim, z_dim], OutputLayer { layout: Some(layout), ..OutputLayer::default() })
        }
    }
}

prop_compose! {
    /// An image cut into slices along one dimension, each with room between its rows and pixels.
    fn sliced()(
        dims in [1i32..6, 1i32..6, 1i32..6], axis in 0usize..3, cut in 0i32..6, starts in [-3i32..4, -3i32..4, -3i32..4],
        room in [0i32..4, 0i32..4], gap in 0i32..3, data_type in 0usize..6,
    ) -> Layer<'static> {
        let data_type = TYPES[data_type];
        let size = data_type.size().unwrap() as i32;
        let range = |k: usize| Range { start: starts[k], end: starts[k] + dims[k] - 1 };
        let whole = [range(0), range(1), range(2)];
        let at = whole[axis].start + cut.min(dims[axis] - 1);
        let mut parts = vec![whole, whole];
        (parts[0][axis].end, parts[1][axis].start) = (at - 1, at);
        parts.retain(|part| part[axis].start <= part[axis].end);
        let (mut slices, mut offsets, mut end) = (vec![], vec![], 0);
        for part in parts {
            let len = |k: usize| part[k].end - part[k].start + 1;
            let x = len(2) + room[0];
            let y = len(1) * x + room[1];
            slices.push(TensorLayout {
                shape: Some(TensorShape { dimension: Some(part.to_vec().into()) }),
                stride: Some(vec![y, x, 1].into()),
            });
            offsets.push((end + gap) * size);
            end += gap + len(0) * y;
        }
        let info = OutputShapeInfo { slice_layout: Some(slices.into()), slice_offset: Some(offsets.into()) };
        let layout = OutputLayer { shape_info: Some(info), ..OutputLayer::default() };
        Layer {
            size_bytes: end * size,
            shape: Some(TensorShape { dimension: Some(whole.to_vec().into()) }),
            ..output(data_type, dims.map(|dim| dim as usize), layout)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tiles_are_taken_apart_element_by_element(layer in tiled(), seed: u64) {
        let output = Output::new(&layer).unwrap();
        let device = splitmix(seed, output.device_bytes());
        prop_assert_eq!(output.take(&device).unwrap(), by_element(&layer, &device));
    }

    #[test]
    fn slices_are_put_together_element_by_element(layer in sliced(), seed: u64) {
        let output = Output::new(&layer).unwrap();
        let device = splitmix(seed, output.device_bytes());
        prop_assert_eq!(output.take(&device).unwrap(), by_element(&layer, &device));
    }
}

/// Options with and without each key.
fn entries() -> impl Strategy<Value = Vec<(&'static str, Kind)>> {
    let near = |edge: usize| (edge.saturating_sub(40)..edge + 40).boxed();
    let len = prop_oneof![1usize..400, near(255), near(65535)];
    let package = len.prop_map(|len| Some(("4", Kind::Bytes(len))));
    let int =
        || prop_oneof![Just(0i64), Just(-1), Just(1), -200i64..200, any::<i32>().prop_map(i64::from), any::<i64>()];
    let number = |key| proptest::option::of(int().prop_map(move |value| (key, Kind::Int(value))));
    let text = |key| proptest::option::of((0usize..300).prop_map(move |len| (key, Kind::Bytes(len))));
    let further = proptest::option::of((vec(0usize..300, 0..4), int())).prop_map(|found| match found {
        Some((lens, chip)) => {
            let chips = ("6", Kind::Ints(vec![chip; lens.len() + 1]));
            vec![chips, ("7", Kind::Texts(lens))]
        }
        None => Vec::new(),
    });
    (number("1"), text("2"), text("3"), package, number("5"), further)
        .prop_map(|(a, b, c, d, e, more)| [a, b, c, d, e].into_iter().flatten().chain(more).collect())
}

#[derive(Clone, Debug)]
enum Kind {
    Int(i64),
    Bytes(usize),
    Ints(Vec<i64>),
    Texts(Vec<usize>),
}

/// An archive as tools append it: two members, offsets from the start of the file.
fn archive(start: usize) -> Vec<u8> {
    let (mut members, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in [("labels.txt", "cat\ndog\n"), ("notes", "")] {
        let sizes = [0, content.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
        let names = [name.len() as u16, 0].map(u16::to_le_bytes).concat();
        let at = (start + members.len()) as u32;
        let fixed = [20u16, 0, 0, 0, 0].map(u16::to_le_bytes).concat();
        members.extend([b"PK\x03\x04", &fixed[..], &sizes, &names, name.as_bytes(), content.as_bytes()].concat());
        directory.extend([b"PK\x01\x02", &[20, 0][..], &fixed, &sizes, &names, &[0; 10], &at.to_le_bytes()].concat());
        directory.extend(name.as_bytes());
    }
    let counts = [0u16, 0, 2, 2].map(u16::to_le_bytes).concat();
    let places = [directory.len() as u32, (start + members.len()) as u32].map(u32::to_le_bytes).concat();
    [&members, &directory, &b"PK\x05\x06"[..], &counts, &places, &[0, 0]].concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn options_come_back_to_the_byte(entries in entries()) {
        let bytes = vec![b'p'; 70_000];
        let values: Vec<_> = entries.iter().map(|(key, kind)| (*key, match kind {
            Kind::Int(value) => OptionValue::Int(*value),
            Kind::Bytes(len) => OptionValue::String(&bytes[..*len]),
            Kind::Ints(list) => OptionValue::Ints(list.clone()),
            Kind::Texts(lens) => OptionValue::Strings(lens.iter().map(|len| &bytes[..*len]).collect()),
        })).collect();
        let written = custom_options(&values);
        let read = CustomOptions::parse(&written).unwrap();
        let keys: Vec<_> = read.keys.iter().map(|(key, _)| *key).collect();
        prop_assert_eq!(keys, entries.iter().map(|(key, _)| *key).collect::<Vec<_>>());
        for (key, kind) in &entries {
            match (*key, kind) {
                ("1", Kind::Int(value)) => prop_assert_eq!(read.version, Some(*value)),
                ("5", Kind::Int(value)) => prop_assert_eq!(read.preference, Some(*value)),
                ("2", Kind::Bytes(len)) => prop_assert_eq!(read.chip_name.map(<[u8]>::len), Some(*len)),
                ("4", Kind::Bytes(len)) => prop_assert_eq!(read.package.1.len(), *len),
                ("6", Kind::Ints(list)) => prop_assert_eq!(read.chips.as_ref(), Some(list)),
                _ => {}
            }
        }
        prop_assert!(rewrite_options(&read, read.package.1).unwrap() == written);
    }

    #[test]
    fn other_packages_go_in_and_everything_else_stays(
        cached in 1usize..40, others in vec(1usize..2000, 1..4), zipped: bool,
    ) {
        let mut bytes = wrap(&made::pair(3, cached * 64, 64)).unwrap();
        if zipped {
            bytes.extend(archive(bytes.len()));
        }
        for cached in others {
            let package = made::pair(3, cached * 64, 64);
            let before = ModelRef::parse(&bytes, &Limits::DEFAULT).unwrap();
            let own = before.operators()[0].options.as_ref().unwrap().package.1;
            prop_assert!(embed(&before, 0, own).unwrap() == bytes);
            let whole = embed(&before, 0, &package).unwrap();
            let after = ModelRef::parse(&whole, &Limits::DEFAULT).unwrap();
            prop_assert!(after.operators()[0].options.as_ref().unwrap().package.1 == package);
            prop_assert_eq!(after.zip().is_some(), zipped);
            if let (Some(before), Some(after)) = (before.zip(), after.zip()) {
                // All of it has moved by the same number of bytes, and says so.
                let moved = after.start - before.start;
                prop_assert_eq!(&whole[after.start..after.directory], &bytes[before.start..before.directory]);
                prop_assert_eq!((after.directory, after.end), (before.directory + moved, before.end + moved));
                for (before, after) in before.members.iter().zip(&after.members) {
                    prop_assert_eq!((&after.name, after.header), (&before.name, before.header + moved));
                }
            }
            bytes = whole;
        }
    }
}

/// The models that command transcripts are about: two compiled together, one alone.
#[test]
fn samples_are_fresh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpus/edgetpu");
    let samples = [
        ("left.tflite", wrap(&made::pair(0x0123_4567_89ab_cdef, 1024, 64)).unwrap()),
        ("right.tflite", wrap(&made::pair(0x0123_4567_89ab_cdef, 4096, 512)).unwrap()),
        ("alone.dwn", made::pair(0xfeed, 640, 64)),
    ];
    for (name, bytes) in samples {
        let path = folder.join(name);
        if env::var_os("EDGEPACK_BLESS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name} is stale: .ci/generate writes it again");
    }
}
