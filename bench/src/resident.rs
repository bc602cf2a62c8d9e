//! Memory that this process has resident, as the system counts it.

/// Most bytes since [`forget_peak`]; `None` where the system does not say.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Bytes now.
pub fn now() -> Option<u64> {
    status("VmRSS:")
}

/// The peak is what is resident now.
pub fn forget_peak() -> std::io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")
}

fn status(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}
