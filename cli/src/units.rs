//! Numbers as people like to read them.

use std::time::Duration;

use edgepack_format::notation::Counted;

/// Bytes in binary units: `96 B`, `1.5 KiB`, `20.3 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    // 1023.95 would be printed as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Fraction of a whole as a percentage: `12.5 %`. Of more than the whole only that is said; who shows it says why.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    if part > whole {
        return "over 100 %".to_owned();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

/// Fraction of a file that a range of it is; of one that is not in it that it is not.
pub fn part_of_file(offset: Option<u64>, bytes: u64, file: u64) -> String {
    match offset.unwrap_or(0).checked_add(bytes) {
        Some(end) if end <= file => share(bytes, file),
        _ => "beyond its end".to_owned(),
    }
}

/// A duration with three or four digits: `812 ns`, `3.42 µs`, `15.1 ms`, `2.00 s`.
pub fn duration(time: Duration) -> String {
    let nanos = time.as_nanos() as f64;
    let (value, unit) = match nanos {
        n if n < 1e3 => return format!("{n:.0} ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    match value {
        v if v < 10.0 => format!("{v:.2} {unit}"),
        v if v < 100.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

/// A count with its noun, `no` if there are none: `no methods`, `1 method`.
pub fn amount(number: usize, noun: &str) -> String {
    match number {
        0 => format!("no {}", count(0, noun).trim_start_matches("0 ")),
        _ => count(number, noun),
    }
}

/// A count with its noun: `1 method`, `2 methods`.
pub fn count(number: usize, noun: &str) -> String {
    Counted(number, noun).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_change_unit_in_time() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (1 << 20, "1.0 MiB")];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
    }

    #[test]
    fn parts_and_counts_read_as_they_are_spoken() {
        assert_eq!([share(1, 8), share(9, 8), share(1, 0)], ["12.5 %", "over 100 %", "-"]);
        assert_eq!([count(1, "entry"), count(2, "entry"), count(3, "key")], ["1 entry", "2 entries", "3 keys"]);
    }

    #[test]
    fn durations_keep_their_digits() {
        let cases = [(5, "5 ns"), (3_420, "3.42 µs"), (15_100_000, "15.1 ms"), (812_000_000, "812 ms")];
        for (nanos, text) in cases {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(duration(Duration::from_secs(2)), "2.00 s");
    }
}
