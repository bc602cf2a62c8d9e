//! Writers and repairers that are killed at each of their steps, and journals that are not to be trusted.

use super::*;

/// A folder of this test, and a file in it.
fn folder(name: &str, bytes: &[u8]) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("edgepack-overwrite-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let file = folder.join("model.pte");
    fs::write(&file, bytes).unwrap();
    (folder, file)
}

fn old() -> Vec<u8> {
    (0..200u8).collect()
}

fn changes() -> Vec<Change> {
    vec![Change { at: 150, bytes: vec![255; 50] }, Change { at: 3, bytes: vec![0; 40] }]
}

fn new() -> Vec<u8> {
    let mut bytes = old();
    for change in changes() {
        bytes[change.at as usize..][..change.bytes.len()].copy_from_slice(&change.bytes);
    }
    bytes
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Runs until this step and returns whether it got to the end.
fn cut(step: usize, run: impl FnOnce(&mut Steps<'_>) -> io::Result<()>) -> bool {
    let mut left = step;
    let mut before = || match left.checked_sub(1) {
        Some(less) => {
            left = less;
            Ok(())
        }
        None => Err(io::Error::other("killed")),
    };
    let outcome = run(&mut Steps { piece: 7, before: Some(&mut before) });
    assert!(outcome.as_ref().err().is_none_or(|error| error.to_string() == "killed"), "{outcome:?}");
    outcome.is_ok()
}

#[test]
fn bytes_are_replaced_and_nothing_is_left() {
    let (folder, file) = folder("whole", &old());
    overwrite(&file, &changes()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), new());
    assert_eq!(names(&folder), ["model.pte"]);
    assert!(!recover(&file).unwrap());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn killed_at_any_step_it_comes_back() {
    let (folder, file) = folder("killed", &old());
    let place = Place::of(&file).unwrap();
    let (mut torn, mut step) = (0, 0);
    while !cut(step, |steps| place.overwrite(&changes(), steps)) {
        let left = fs::read(&file).unwrap();
        torn += usize::from(left != old() && left != new());
        // The process that repairs is killed at each of its steps, too.
        let mut inner = 0;
        while !cut(inner, |steps| place.undo(steps).map(drop)) {
            inner += 1;
        }
        let now = fs::read(&file).unwrap();
        assert!(now == old() || (left == new() && now == new()), "killed at step {step}");
        assert!(!recover(&file).unwrap());
        assert_eq!(names(&folder), ["model.pte"], "killed at step {step}");
        fs::write(&file, old()).unwrap();
        step += 1;
    }
    assert!(step > 15 && torn > 10, "{step} steps, {torn} of them torn");
    assert_eq!(fs::read(&file).unwrap(), new());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_journal_changes_no_file_but_its_own() {
    let (folder, file) = folder("foreign", &old());
    let place = Place::of(&file).unwrap();
    assert!(!cut(8, |steps| place.overwrite(&changes(), steps)));
    let journal = fs::read(&place.journal).unwrap();
    // Another file of the same length in its place, a longer one, a damaged journal.
    let mut other = old();
    other[10] = 200;
    for bytes in [other, vec![1; 200], vec![1; 201]] {
        fs::write(&file, &bytes).unwrap();
        let error = recover(&file).unwrap_err().to_string();
        assert!(error.contains("other bytes") && error.contains(".model.pte.edgepack-journal"), "{error}");
        assert!(overwrite(&file, &changes()).is_err());
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
    fs::write(&file, old()).unwrap();
    for len in 0..journal.len() {
        fs::write(&place.journal, &journal[..len]).unwrap();
        assert!(recover(&file).is_err(), "{len}");
    }
    for at in 0..journal.len() {
        let mut damaged = journal.clone();
        damaged[at] ^= 1;
        fs::write(&place.journal, damaged).unwrap();
        assert!(recover(&file).is_err(), "{at}");
    }
    fs::write(&place.journal, journal).unwrap();
    assert!(recover(&file).unwrap());
    assert_eq!(fs::read(&file).unwrap(), old());
    fs::remove_dir_all(folder).unwrap();
}

#[cfg(unix)]
#[test]
fn journals_of_others_are_refused() {
    let (folder, file) = folder("others", &old());
    let place = Place::of(&file).unwrap();
    assert!(!cut(8, |steps| place.overwrite(&changes(), steps)));
    let torn = fs::read(&file).unwrap();
    let elsewhere = folder.join("elsewhere");
    fs::rename(&place.journal, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &place.journal).unwrap();
    assert!(recover(&file).unwrap_err().to_string().contains("not a regular file"));
    fs::rename(&elsewhere, &place.journal).unwrap();
    // Who may give files away, root, sees that those of others are refused.
    if std::os::unix::fs::chown(&place.journal, Some(12_345), None).is_ok() {
        assert!(recover(&file).unwrap_err().to_string().contains("another user's"));
        assert_eq!(fs::read(&file).unwrap(), torn);
        std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
    }
    assert!(recover(&file).unwrap());
    assert_eq!(fs::read(&file).unwrap(), old());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn ranges_outside_the_file_or_over_each_other_are_refused() {
    let (folder, file) = folder("ranges", &old());
    let change = |at, len| Change { at, bytes: vec![9; len] };
    for changes in [vec![change(199, 2)], vec![change(u64::MAX, 2)], vec![change(3, 4), change(6, 1)]] {
        assert_eq!(overwrite(&file, &changes).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
    assert!(overwrite(folder.join("missing"), &[]).is_err());
    assert!(overwrite(&folder, &[]).is_err());
    assert_eq!(fs::read(&file).unwrap(), old());
    assert_eq!(names(&folder), ["model.pte"]);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn who_is_changing_it_is_left_alone() {
    let (folder, file) = folder("locked", &old());
    let place = Place::of(&file).unwrap();
    let held = place.lock().unwrap();
    assert!(!recover(&file).unwrap());
    assert!(!cut(8, |steps| place.overwrite(&changes(), steps)));
    let torn = fs::read(&file).unwrap();
    assert!(recover(&file).unwrap_err().to_string().contains("another process"));
    assert!(overwrite(&file, &changes()).is_err());
    assert_eq!(fs::read(&file).unwrap(), torn);
    place.unlock(held);
    assert!(recover(&file).unwrap());
    assert_eq!(fs::read(&file).unwrap(), old());
    fs::remove_dir_all(folder).unwrap();
}
