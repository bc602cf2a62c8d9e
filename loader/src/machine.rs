//! Limits that this machine sets for a file: half of the memory that this process can have.
//!
//! On Linux that memory is the least of the installed memory, the limit of the process's control group and its address
//! space; on other systems it is not known, and the answer is [`Limits::DEFAULT`].

use std::sync::OnceLock;

use edgepack_format::limits::Limits;

/// The limits for files of any origin on this machine. Asked once; the answer does not change while the process runs.
///
/// ```
/// let limits = edgepack_loader::machine_limits();
/// assert!(limits.memory_bytes > 0);
/// ```
pub fn machine_limits() -> Limits {
    static LIMITS: OnceLock<Limits> = OnceLock::new();
    *LIMITS
        .get_or_init(|| memory(&|path| std::fs::read_to_string(path).ok()).map_or(Limits::DEFAULT, Limits::for_memory))
}

/// Bytes that this process can have; `None` where it is not known. `read` gives the text of a file of the system.
fn memory(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let installed = read("/proc/meminfo").and_then(|text| Some(field(&text, "MemTotal:")?.saturating_mul(1024)));
    let space = read("/proc/self/limits").and_then(|text| field(&text, "Max address space"));
    let group = read("/proc/self/cgroup").and_then(|text| group(&text, read));
    [installed, space, group].into_iter().flatten().filter(|&bytes| bytes > 0).min()
}

/// The first number behind a label at the start of a line; `None` if it is a word, as `unlimited` is.
fn field(text: &str, label: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The least of what the process's control groups allow, those above its own included: of one hierarchy (`0::/a/b`), or of
/// the one for memory (`4:memory:/a/b`).
fn group(text: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let allowed = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (root, file) = match parts.next()? {
            "" => ("/sys/fs/cgroup", "memory.max"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let mut path = parts.next()?.trim_end_matches('/');
        let mut least: Option<u64> = None;
        loop {
            let said = read(&format!("{root}{path}/{file}")).and_then(|text| text.trim().parse().ok());
            least = [least, said].into_iter().flatten().min();
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None => return least,
            }
        }
    };
    text.lines().filter_map(allowed).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Option<u64> {
        memory(&|path| files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned()))
    }

    const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemTotal:       24584932 kB\nMemFree:          100 kB\n");

    #[test]
    fn the_least_of_what_is_said_counts() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[MEMINFO]), Some(24_584_932 << 10));
        let space = |soft| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space         {soft}  unlimited  bytes\n")
        };
        assert_eq!(of(&[MEMINFO, ("/proc/self/limits", &space("unlimited"))]), Some(24_584_932 << 10));
        assert_eq!(of(&[MEMINFO, ("/proc/self/limits", &space("4096000000"))]), Some(4_096_000_000));
    }

    #[test]
    fn groups_are_asked_up_to_the_root() {
        let one = [MEMINFO, ("/proc/self/cgroup", "0::/a/b\n"), ("/sys/fs/cgroup/a/memory.max", "1000000\n")];
        assert_eq!(of(&one), Some(1_000_000));
        let unlimited = [MEMINFO, ("/proc/self/cgroup", "0::/a\n"), ("/sys/fs/cgroup/a/memory.max", "max\n")];
        assert_eq!(of(&unlimited), Some(24_584_932 << 10));
        let old = [
            MEMINFO,
            ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(of(&old), Some(2_000_000));
    }

    #[test]
    fn a_method_may_have_half() {
        let limits = Limits::for_memory(1 << 34);
        assert_eq!((limits.memory_bytes, limits.arena_bytes), (1 << 33, Limits::DEFAULT.arena_bytes));
        assert!(machine_limits().memory_bytes > 0);
    }
}
