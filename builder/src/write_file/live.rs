//! Temporaries of this process, so that an interruption can remove them.
//!
//! Invariant: whoever makes a temporary, or puts files in their places, holds the lock meanwhile. So an interruption finds
//! every temporary in the list, and either none or all files of a batch in their places.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

static LIVE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The temporary folders of this process.
pub(super) fn live() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A set of paths is whole at any time.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps this process from making temporaries and from putting files in their places, for as long as it lives.
pub struct Abandoned {
    _live: MutexGuard<'static, BTreeSet<PathBuf>>,
}

/// Removes all temporaries of this process, which is about to end. For the thread that takes care of signals: files that
/// were written so far are lost, those that are being put in their places all get there first.
pub fn abandon() -> Abandoned {
    let live = live();
    for path in live.iter() {
        // Nobody is left to tell; the next run tries again.
        let _ = fs::remove_dir_all(path);
    }
    Abandoned { _live: live }
}
