//! Text generation inside an application: streamed to standard output, stopped by another thread, and two texts in turn
//! over one program.
//!
//! ```sh
//! cargo run --release -p edgepack-llm --example two_sessions -- tests/data/corpus/llm_demo
//! ```

mod application;

use std::path::PathBuf;

use application::{Application, Error};
use edgepack_llm::generate::Cancel;

fn main() -> Result<(), Error> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("the folder of the model is missing")?;
    let application = Application::open(&folder)?;

    let made = application.stream("Once upon a time", Cancel::new(), &mut std::io::stdout())?;
    println!("\n  ({} tokens, ended by {:?})", made.statistics.new_tokens, made.end);

    let (read, made) = application.one_sentence("Long ago")?;
    println!("{read}\n  ({:?} after {} tokens)", made.end, made.statistics.new_tokens);

    let [first, second] = application.in_turn(["Once upon a time", "Long ago"], 0.7, 40)?;
    println!("first:{first}\nsecond:{second}");
    Ok(())
}
