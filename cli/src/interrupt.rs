//! The process is asked to end: what is half written goes, processes that run code of packages go, and then the process
//! does.
//!
//! The first signal removes temporaries and ends the process as the signal would have, so that its parent sees why; a
//! second one ends it at once. A signal that the process was started to ignore, as `nohup` does, stays ignored. Where there
//! are no such signals the next run removes what is left.

/// Takes care of signals from now on.
#[cfg(unix)]
pub fn install() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use edgepack::builder::write_file::abandon;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_default};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    let wanted: Vec<i32> = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)).collect();
    let second = Arc::new(AtomicBool::new(false));
    let listen = || -> std::io::Result<()> {
        for signal in &wanted {
            // In this order: the first signal finds the flag down, and raises it.
            register_conditional_default(*signal, second.clone())?;
            register(*signal, second.clone())?;
        }
        let mut signals = Signals::new(&wanted)?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _abandoned = abandon();
                edgepack_native::child::end_all();
                // This ends the process; if it cannot, the next signal does.
                let _ = emulate_default_handler(signal);
            }
        })?;
        Ok(())
    };
    if listen().is_err() {
        // Nobody listens: already the first signal ends the process.
        second.store(true, Ordering::SeqCst);
    }
}

/// Returns whether the process was started to ignore a signal, if the system reports that.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).is_ok_and(|bit| mask >> bit & 1 == 1)
}

/// There is nothing to take care of.
#[cfg(not(unix))]
pub fn install() {}
