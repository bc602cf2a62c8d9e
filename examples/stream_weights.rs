//! Weights that never are in memory: they are made while the program is written, and read while a method is loaded.
//!
//!     cargo run --release --example stream_weights

use std::io::{self, Write};

use edgepack::builder::content::{Content, Data};
use edgepack::prelude::*;

/// Numbers that a formula gives, row by row; a file, a socket or a decoder would do as well.
struct Rows {
    rows: usize,
    columns: usize,
}

impl Content for Rows {
    fn byte_len(&self) -> u64 {
        (self.rows * self.columns * size_of::<f32>()) as u64
    }
    fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in 0..self.rows {
            let row: Vec<u8> = (0..self.columns).flat_map(|column| ((row + column) as f32).to_le_bytes()).collect();
            out.write_all(&row)?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (rows, columns) = (256, 1024);
    let layout = TensorLayout::contiguous(ScalarType::FLOAT, &[rows, columns])?;
    let mut program = ProgramBuilder::new();
    let table = program.constant_from("table", layout, Data::new(Rows { rows, columns }))?;
    let mut forward = program.method("forward");
    let index = forward.input(TensorSpec::new(ScalarType::LONG, [1]))?;
    let out = TensorSpec::new(ScalarType::FLOAT, [1, columns]);
    let row = forward.call("aten::embedding.out", args![table, index, -1i64, false, false], out)?;
    forward.output(row)?;
    let path = std::env::temp_dir().join(format!("edgepack-stream-{}.pte", std::process::id()));
    program.finish()?.write_to_path(&path)?; // one row of the table is in memory at a time

    let program = Program::open(&path)?; // reads the tables of the file, not the weights
    let mut forward = program.method("forward")?.load(&kernels::registry(), &Options::default())?;
    let outputs = forward.run(&[TensorView::from_slice(&[1], &[200i64])?.untyped()])?;
    let row = outputs.get(0).and_then(|output| output.tensor()).ok_or("no tensor")?;
    println!("row 200 starts with {:?}", &row.as_slice::<f32>()?[..3]);
    assert_eq!(row.as_slice::<f32>()?[..3], [200.0, 201.0, 202.0]);
    std::fs::remove_file(&path)?;
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
