//! Stacks for flame-graph tools: a line for each instruction, modules and operator between semicolons, then nanoseconds.

use std::fmt::Write as _;

use super::report::{By, Profile};

/// Writes a line for each instruction that took time, in the order of the plan.
pub fn folded(profile: &Profile) -> String {
    let mut rows: Vec<_> = profile.rows(By::Node).iter().filter(|row| row.time.median_ns > 0).collect();
    rows.sort_by_key(|row| row.step);
    let mut text = String::new();
    for row in rows {
        let place = row.place.as_deref().unwrap_or_default();
        let own = format!("{} {place}", row.name);
        let method = profile.method.as_deref().unwrap_or("trace");
        let frames = [method].into_iter().chain(row.modules.iter().map(String::as_str));
        let frames = frames.chain(row.backend.as_deref()).chain([own.trim()]);
        // A semicolon is between frames; names have no line ends.
        let stack = frames.map(|frame| frame.replace(';', ",")).collect::<Vec<_>>().join(";");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{stack} {}", row.time.median_ns);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::report::Origins;
    use crate::profile::watch::{Observation, Step};

    #[test]
    fn names_cannot_make_frames_or_lines() {
        let step = Step {
            chain: 0,
            instruction: 3,
            position: None,
            name: "a;b\nc".to_owned(),
            delegate: None,
            node: None,
            sizes: None,
            work: None,
            calls: 1,
            samples: vec![7],
        };
        let mut origins = Origins::default();
        origins.modules.insert((0, 3), vec!["net".to_owned()]);
        let observation = Observation { steps: vec![step], runs: vec![9], timeline: Vec::new() };
        let text = folded(&Profile::of("f", Some("forward"), &observation, &origins));
        assert_eq!(text, "forward;net;a,b\\nc 3 7\n");
    }
}
