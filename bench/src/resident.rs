//! Memory that this process has resident, as the system counts it.

/// Most bytes since [`forget_peak`]; `None` where the system does not say.
pub fn peak() -> Option<u64> {
    status("VmHWM:")
}

/// Bytes now.
pub fn now() -> Option<u64> {
    status("VmRSS:")
}

/// Bytes of code now, that of libraries among them; most are pages of files that a system brings in around code that runs.
pub fn code() -> Option<u64> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let (mut bytes, mut is_code) = (0, false);
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next()?, words.next()?) {
            ("Rss:", kilobytes) if is_code => bytes += kilobytes.parse::<u64>().ok()? << 10,
            (name, access) if !name.ends_with(':') => is_code = access.contains('x'),
            _ => {}
        }
    }
    Some(bytes)
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
