//! Bounds of what a profile holds of a file: names may be long and shared, and a few bytes can stand for many runs.

use crate::status::Failure;
use crate::units::{bytes, count};

/// Bytes that the names of modules take at most.
const NAMES: usize = 64 << 20;
/// Times of instructions in runs that are noted at most.
const TIMES: usize = 1 << 24;

/// Room for names of modules.
pub struct NameRoom(usize);

impl Default for NameRoom {
    fn default() -> Self {
        NameRoom(NAMES)
    }
}

impl NameRoom {
    /// Takes the room of these names.
    pub fn take(&mut self, names: &[String]) -> Result<(), Failure> {
        let wanted = names.iter().map(|name| name.len() + size_of::<String>()).sum();
        match self.0.checked_sub(wanted) {
            Some(left) => self.0 = left,
            None => {
                let most = bytes(NAMES as u64);
                return Err(Failure::findings(format!("the names of modules take more than {most}")));
            }
        }
        Ok(())
    }
}

/// Refuses more times than are noted.
pub fn check_times(runs: usize, steps: usize) -> Result<(), Failure> {
    match runs.checked_mul(steps).is_some_and(|times| times <= TIMES) {
        true => Ok(()),
        false => {
            let (runs, steps) = (count(runs, "run"), count(steps, "instruction"));
            Err(Failure::findings(format!("{runs} of {steps}: at most {TIMES} times are noted")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_ends() {
        let mut room = NameRoom(100);
        let names = ["a".repeat(40)];
        assert!(room.take(&names).is_ok() && room.take(&names).is_err() && room.take(&[]).is_ok());
        assert!(check_times(20, 30_000).is_ok() && check_times(1 << 20, 17).is_err());
        assert!(check_times(usize::MAX, 2).is_err());
    }
}
