//! The example backend: shared weights exist once, wherever they are stored, and errors name the key and the method.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use edgepack::executor::delegate::Backends;
use edgepack::executor::{LoadError, PackCache};
use edgepack::loader::{Bytes, DataFile, Error, NamedDataMap, Source};
use edgepack::prelude::*;

use crate::example::backend::FusedMlp;
use crate::example::export::{Files, Linear, Mlp, export};
use crate::example::map::OwnMap;

const ROWS: usize = 5;

fn linear(name: &str, inputs: usize, outputs: usize) -> Linear {
    let number = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 5045.0 - 0.1;
    let weight = (0..inputs * outputs).map(number).collect();
    Linear { name: name.to_owned(), inputs, outputs, weight, bias: (0..outputs).map(number).collect() }
}

fn mlp() -> Mlp {
    Mlp { layers: vec![linear("up", 24, 40), linear("down", 40, 8)] }
}

/// Computes the layers in plain loops, with `max(0, x)` between them.
fn plain(mlp: &Mlp, x: &[f32]) -> Vec<f32> {
    let mut values = x.to_vec();
    for (index, layer) in mlp.layers.iter().enumerate() {
        let rows = values.chunks(layer.inputs).flat_map(|row| {
            (0..layer.outputs).map(|o| {
                let weight = &layer.weight[o * layer.inputs..][..layer.inputs];
                let sum = layer.bias[o] + row.iter().zip(weight).map(|(x, w)| x * w).sum::<f32>();
                if index + 1 == mlp.layers.len() { sum } else { sum.max(0.0) }
            })
        });
        values = rows.collect();
    }
    values
}

fn load(
    files: &Files,
    method: &str,
    map: Option<Arc<dyn NamedDataMap>>,
    cache: &PackCache,
) -> Result<Method, LoadError> {
    let program = Program::from_bytes(files.program.clone()).unwrap();
    let options = Options {
        backends: Backends::new().with(FusedMlp),
        data: map.into_iter().collect(),
        cache: cache.clone(),
        ..Options::default()
    };
    program.method(method).unwrap().load(&kernels::registry(), &options)
}

fn run(method: &mut Method, x: &[f32]) -> Vec<f32> {
    let view = TensorView::of::<f32>(&[x.len() / 24, 24], bytemuck::cast_slice(x)).unwrap();
    let outputs = method.run(&[view]).unwrap();
    let Some(Output::Tensor(tensor)) = outputs.get(0) else { panic!("no tensor") };
    tensor.as_slice::<f32>().unwrap().to_vec()
}

fn input() -> Vec<f32> {
    (0..ROWS * 24).map(|i| (i % 23) as f32 / 23.0 - 0.5).collect()
}

#[test]
fn the_place_of_the_data_makes_no_difference() {
    let (inside, outside) = (export(&mlp(), ROWS, None).unwrap(), export(&mlp(), ROWS, Some("weights")).unwrap());
    let data_file = DataFile::from_bytes(outside.data[0].1.clone()).unwrap();
    let own = OwnMap::copy_of(&data_file).unwrap();
    let flat = DataFile::from_bytes(outside.flat_data.clone()).unwrap();
    let places: [(&Files, Option<Arc<dyn NamedDataMap>>); 4] = [
        (&inside, None),
        (&outside, Some(Arc::new(data_file))),
        (&outside, Some(Arc::new(flat))),
        (&outside, Some(Arc::new(own))),
    ];
    let x = input();
    let want = plain(&mlp(), &x);
    let mut answers = Vec::new();
    for (files, map) in places {
        let cache = PackCache::new();
        let mut prefill = load(files, "prefill", map.clone(), &cache).unwrap();
        let mut decode = load(files, "decode", map, &cache).unwrap();
        assert_eq!(cache.len(), 2, "two weights, packed once for both methods");
        let (all, one) = (run(&mut prefill, &x), run(&mut decode, &x[..24]));
        assert!(all.iter().zip(&want).all(|(have, want)| (have - want).abs() < 1e-4));
        assert!(one.iter().zip(&want).all(|(have, want)| (have - want).abs() < 1e-4));
        answers.push((all, one));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]));
}

#[test]
fn shared_weights_are_in_the_file_once() {
    let files = export(&mlp(), ROWS, None).unwrap();
    let program = Program::from_bytes(files.program.clone()).unwrap();
    let map = program.named_data().unwrap();
    let keys: Vec<&str> = (0..map.len()).filter_map(|index| map.key(index)).collect();
    assert_eq!(keys, ["up.packed", "up.bias", "down.packed", "down.bias"]);
    let packed = map.data("up.packed").unwrap().unwrap();
    let found = files.program.windows(packed.len()).filter(|bytes| **bytes == *packed).count();
    assert_eq!(found, 1);
}

#[test]
fn eight_threads_load_at_once_and_pack_once() {
    let files = export(&mlp(), ROWS, None).unwrap();
    let (cache, want) = (PackCache::new(), plain(&mlp(), &input()));
    let methods: Vec<Method> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                let (files, cache) = (&files, &cache);
                scope
                    .spawn(move || load(files, if index % 2 == 0 { "prefill" } else { "decode" }, None, cache).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(cache.len(), 2);
    for (index, mut method) in methods.into_iter().enumerate() {
        let x = if index % 2 == 0 { input() } else { input()[..24].to_vec() };
        assert!(run(&mut method, &x).iter().zip(&want).all(|(have, want)| (have - want).abs() < 1e-4));
    }
    assert!(cache.is_empty(), "dropped with the last method");
}

/// Counts how often data are asked for, and which are still held.
struct Counting {
    inner: OwnMap,
    asked: AtomicUsize,
    held: Arc<()>,
}

/// Bytes that are counted while a caller holds them.
struct Held {
    data: Bytes,
    _count: Arc<()>,
}

impl Source for Held {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn borrow(&self, range: Range<u64>) -> Option<&[u8]> {
        self.data.get(range.start as usize..range.end as usize)
    }
}

impl NamedDataMap for Counting {
    fn data(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let data = self.inner.data(key)?;
        Ok(data.and_then(|data| {
            let held: Arc<dyn Source> = Arc::new(Held { _count: Arc::clone(&self.held), data });
            let range = 0..held.len();
            Bytes::lent(held, range)
        }))
    }
    fn layout(&self, key: &str) -> Result<Option<TensorLayout>, Error> {
        self.inner.layout(key)
    }
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn key(&self, index: usize) -> Option<&str> {
        self.inner.key(index)
    }
    fn contains(&self, key: &str) -> bool {
        self.inner.contains(key)
    }
}

#[test]
fn data_are_read_on_request_and_released_on_drop() {
    let outside = export(&mlp(), ROWS, Some("weights")).unwrap();
    let inner = OwnMap::copy_of(&DataFile::from_bytes(outside.data[0].1.clone()).unwrap()).unwrap();
    let counting = Arc::new(Counting { inner, asked: AtomicUsize::new(0), held: Arc::new(()) });
    let map: Arc<dyn NamedDataMap> = counting.clone();
    let method = load(&outside, "decode", Some(map), &PackCache::new()).unwrap();
    assert_eq!(counting.asked.load(Ordering::Relaxed), 4, "each key once");
    assert_eq!(Arc::strong_count(&counting.held) - 1, 4);
    drop(method);
    assert_eq!(Arc::strong_count(&counting.held) - 1, 0);
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let outside = export(&mlp(), ROWS, Some("weights")).unwrap();
    let message = |map: Option<Arc<dyn NamedDataMap>>| {
        load(&outside, "decode", map, &PackCache::new()).err().expect("refused").to_string()
    };
    let missing = message(None);
    assert!(missing.contains("no data under the key up.packed of decode"), "{missing}");
    let other =
        export(&Mlp { layers: vec![linear("up", 24, 39), linear("down", 39, 8)] }, ROWS, Some("weights")).unwrap();
    let wrong = message(Some(Arc::new(DataFile::from_bytes(other.data[0].1.clone()).unwrap())));
    assert!(wrong.contains("the key up.packed of decode has 3744 bytes, 24x40 floats are wanted"), "{wrong}");
}

#[test]
fn two_layers_of_one_name_are_one_layer() {
    let clash = Mlp { layers: vec![linear("same", 8, 8), linear("same", 8, 4)] };
    let error = export(&clash, 1, None).err().expect("refused").to_string();
    assert_eq!(error, "backend `FusedMlp`: layer same is 8x8 in prefill and 4x8 in prefill");
}
