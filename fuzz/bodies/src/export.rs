//! Seeds and dictionaries of bodies as files, for engines that know nothing of them.

use std::path::Path;

use edgepack_smith::dictionary;
use sha2::{Digest, Sha256};

use crate::{Body, body};

/// Variable that a libFuzzer target is asked by for its own seeds: a folder.
const ASKED: &str = "EDGEPACK_SEEDS";

/// Writes the seeds of a body into `FOLDER/BODY`, called after their content, so that writing them again adds what is new,
/// and its dictionary, if it has one, as `FOLDER/BODY.dict`.
///
/// # Errors
///
/// If a file cannot be read or written.
pub fn write(body: &Body, folder: &Path) -> std::io::Result<()> {
    let (inputs, words) = (body.inputs()?, body.words());
    let own = folder.join(body.name);
    std::fs::create_dir_all(&own)?;
    for input in &inputs {
        let digest = Sha256::digest(input);
        let name: String = digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(own.join(name), input)?;
    }
    if !words.is_empty() {
        std::fs::write(own.with_extension("dict"), dictionary::write(&words))?;
    }
    println!("{:16} {:>4} seeds {:>4} words", body.name, inputs.len(), words.len());
    Ok(())
}

/// Writes them and ends the process if the environment asks for it: a target brings its seeds wherever it was built.
pub fn if_asked(name: &str) {
    let Some(folder) = std::env::var_os(ASKED) else { return };
    let body = body(name).unwrap_or_else(|| panic!("there is no body {name}"));
    let written = write(body, Path::new(&folder));
    if let Err(error) = &written {
        eprintln!("{}: {error}", Path::new(&folder).display());
    }
    std::process::exit(i32::from(written.is_err()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_campaigns_begin_with() {
        let folder = std::env::temp_dir().join(format!("edgepack_seeds_{}", std::process::id()));
        let body = body("ptd").unwrap();
        for _ in 0..2 {
            write(body, &folder).unwrap();
        }
        let files =
            std::fs::read_dir(folder.join("ptd")).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
        let (mut files, mut inputs): (Vec<_>, _) = (files.collect(), body.inputs().unwrap());
        inputs.sort();
        inputs.dedup();
        files.sort();
        assert!(files == inputs && files.len() > 5, "{} files of {} inputs", files.len(), inputs.len());
        let words = std::fs::read_to_string(folder.join("ptd.dict")).unwrap();
        assert_eq!(dictionary::read(&words), body.words());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
