//! A backend that shares weights between methods through named data, and four places to keep the data: inside the
//! program, in a `.ptd`, in a FlatData file, and behind a map of our own.
//!
//!     cargo run --release --example fused_mlp

mod backend;
mod export;
mod format;
mod map;
mod payload;

use std::sync::Arc;

use edgepack::executor::PackCache;
use edgepack::executor::delegate::Backends;
use edgepack::format::limits::Limits;
use edgepack::format::payload::PayloadFile;
use edgepack::loader::DataFile;
use edgepack::prelude::*;

use backend::FusedMlp;
use export::{Files, Linear, Mlp, export};
use format::FusedMlpFormat;
use map::OwnMap;

const ROWS: usize = 16;

/// Place of the data: its label, the program's files, and the map that finds the data.
type Place<'a> = (&'a str, &'a Files, Option<Arc<dyn NamedDataMap>>);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mlp = Mlp { layers: vec![linear("up", 64, 256), linear("down", 256, 64)] };
    let inside = export(&mlp, ROWS, None)?;
    let outside = export(&mlp, ROWS, Some("weights"))?;
    println!("program with its weights  {:>7} bytes", inside.program.len());
    println!("program without           {:>7} bytes", outside.program.len());
    look_into(&inside.program)?;

    let Files { data, flat_data, .. } = &outside;
    let data_file = DataFile::from_bytes(data[0].1.clone())?;
    let flat = DataFile::from_bytes(flat_data.clone())?;
    let own = OwnMap::copy_of(&data_file)?;
    let maps: [Place<'_>; 4] = [
        ("inside the program", &inside, None),
        ("in a .ptd", &outside, Some(Arc::new(data_file))),
        ("in a FlatData file", &outside, Some(Arc::new(flat))),
        ("behind a map of our own", &outside, Some(Arc::new(own))),
    ];
    let mut answers = Vec::new();
    for (place, files, map) in maps {
        let program = Program::from_bytes(files.program.clone())?;
        let cache = PackCache::new();
        let options = Options {
            backends: Backends::new().with(FusedMlp),
            data: map.into_iter().collect(),
            cache: cache.clone(),
            ..Options::default()
        };
        let mut prefill = program.method("prefill")?.load(&kernels::registry(), &options)?;
        let mut decode = program.method("decode")?.load(&kernels::registry(), &options)?;
        let x: Vec<f32> = (0..ROWS * 64).map(|i| (i % 23) as f32 / 23.0 - 0.5).collect();
        let all = first(&prefill.run(&[TensorView::of::<f32>(&[ROWS, 64], bytemuck::cast_slice(&x))?])?)?;
        let one = first(&decode.run(&[TensorView::of::<f32>(&[1, 64], bytemuck::cast_slice(&x[..64]))?])?)?;
        println!("{place:<24}  prefill {:?}…  {} weights packed for both methods", &all[..3], cache.len());
        answers.push((all, one));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "the place of the data makes no difference");
    println!("all four agree");
    Ok(())
}

/// Payloads as tools see them: verified, and described in lines.
fn look_into(program: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    let payloads = edgepack::payloads().with(FusedMlpFormat);
    let file = PayloadFile::whole(program)?;
    let findings = payloads.verify(&file, &Limits::DEFAULT);
    assert!(findings.is_empty(), "{findings}");
    payloads.visit(&file, &Limits::DEFAULT, &mut |found, path, out| {
        if let Ok(description) = found.format.describe(&found.payload, out.budget()) {
            description.nodes.iter().for_each(|node| println!("{path}  {}", node.text));
        }
    });
    Ok(())
}

fn first(outputs: &Outputs<'_>) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let output = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    Ok(output.as_slice::<f32>()?.to_vec())
}

/// A layer with numbers that repeat in no pattern that matters.
fn linear(name: &str, inputs: usize, outputs: usize) -> Linear {
    let number = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 5045.0 - 0.1;
    Linear {
        name: name.to_owned(),
        inputs,
        outputs,
        weight: (0..inputs * outputs).map(number).collect(),
        bias: (0..outputs).map(number).collect(),
    }
}
