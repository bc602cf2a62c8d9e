//! A lock that says that the owner of a temporary folder is alive.
//!
//! The system drops it when the process ends, however it ends, so a number that another process has by now, or a process
//! in another container or on another machine, is never mistaken for it.

use std::fs::File;
#[cfg(any(unix, windows))]
use std::fs::OpenOptions;
use std::io;
use std::path::Path;

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Outcome of an attempt.
#[cfg_attr(not(any(unix, windows)), expect(dead_code, reason = "nobody knows there"))]
#[derive(Debug)]
pub(super) enum Attempt {
    /// This process holds it.
    Held(Lock),
    /// Another process holds it.
    Taken,
    /// The file system has no locks.
    #[cfg_attr(windows, expect(dead_code, reason = "an open file always can be kept from others there"))]
    Unknown,
}

/// Makes the file if it is not there, and takes the lock on it if no process has it.
#[cfg(unix)]
pub(super) fn attempt(path: &Path) -> io::Result<Attempt> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    use rustix::fs::{FlockOperation, OFlags, flock};

    // A pipe of that name, which is none of ours, would keep us waiting.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    let flags = i32::try_from(flags).map_err(|_| io::ErrorKind::Unsupported)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => return Ok(Attempt::Taken),
        Err(_) => return Ok(Attempt::Unknown),
    }
    // Between opening and locking another process may have removed it: then the lock is on a file that no other finds.
    let (ours, there) = (file.metadata()?, std::fs::symlink_metadata(path)?);
    match (ours.dev(), ours.ino()) == (there.dev(), there.ino()) {
        true => Ok(Attempt::Held(Lock { _file: file })),
        false => Ok(Attempt::Taken),
    }
}

/// Tries to lock the file where the system can keep others from an open file.
#[cfg(windows)]
pub(super) fn attempt(path: &Path) -> io::Result<Attempt> {
    use std::os::windows::fs::OpenOptionsExt;

    // Others may remove it, which the owner of the lock does.
    const SHARE_DELETE: u32 = 4;
    const SHARING_VIOLATION: i32 = 32;
    match OpenOptions::new().write(true).create(true).truncate(false).share_mode(SHARE_DELETE).open(path) {
        Ok(file) => Ok(Attempt::Held(Lock { _file: file })),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(Attempt::Taken),
        Err(error) => Err(error),
    }
}

/// Answers `Unknown`: the platform has no locks.
#[cfg(not(any(unix, windows)))]
pub(super) fn attempt(_path: &Path) -> io::Result<Attempt> {
    Ok(Attempt::Unknown)
}
