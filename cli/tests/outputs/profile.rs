//! Profiles: tables, pages and traces of what ran agree with each other, whatever names a file has.

use serde_json::Value;

use super::*;

/// A program with a delegate, the record of its export, and its trace by ExecuTorch's runtime.
fn blocks(name: &str) -> Folder {
    let folder = Folder::new(name);
    for file in ["blocks.pte", "blocks.etrecord", "blocks.etdp"] {
        folder.take(&format!("trace/{file}"), file);
    }
    folder
}

fn document(folder: &Folder, args: &[&str]) -> Value {
    let output = run(folder, args);
    status(&output, 0, &args);
    serde_json::from_slice(&output.stdout).expect("a document")
}

fn list<'d>(document: &'d Value, field: &str) -> &'d [Value] {
    document[field].as_array().unwrap_or_else(|| panic!("{field} of {document}"))
}

fn sum(rows: &[Value], field: &str) -> u64 {
    rows.iter().map(|row| row[field].as_u64().expect("a number")).sum()
}

#[test]
fn groups_are_of_the_same_instructions() {
    let folder = blocks("groups");
    let profile =
        document(&folder, &["profile", "blocks.pte", "--etrecord", "blocks.etrecord", "--runs", "3", "--json"]);
    assert_eq!((profile["schema"].as_str(), profile["runs"].as_u64()), (Some("edgepack/profile/1"), Some(3)));
    assert!(profile["run"]["median_ns"].as_u64().is_some_and(|time| time > 0));
    let nodes = list(&profile, "nodes");
    for group in ["instructions", "operators", "modules"] {
        let rows = list(&profile, group);
        for field in ["bytes", "multiply_adds", "instructions"] {
            assert_eq!(sum(rows, field), sum(nodes, field), "{field} of {group}");
        }
        let times: Vec<u64> = rows.iter().map(|row| row["median_ns"].as_u64().expect("a time")).collect();
        assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    }
    // Two products in each block and one at the end: 3 rows by 4 by 8, by 8 by 4, and by 4 by 2.
    assert_eq!(sum(nodes, "multiply_adds"), 2 * (3 * 4 * 8 + 3 * 8 * 4) + 3 * 4 * 2);
    let delegates = list(&profile, "instructions").iter().filter(|row| row["name"] == "XnnpackBackend");
    assert_eq!(delegates.count(), 2);
    // The record names the modules of instructions, and by the handles of the payload those of nodes in delegates.
    let modules: Vec<&str> = list(&profile, "modules").iter().filter_map(|row| row["name"].as_str()).collect();
    for module in ["Net / blocks.0 Block / norm LayerNorm", "Net / blocks.1 Block / up Linear", "Net / head Linear"] {
        assert!(modules.contains(&module), "{modules:?}");
    }
}

#[test]
fn memory_at_its_peak_is_within_the_memories() {
    let folder = blocks("peak");
    let profile = document(&folder, &["profile", "blocks.pte", "--runs", "1", "--json"]);
    let memory = &profile["memory"];
    let alive: Vec<u64> = list(memory, "alive_bytes").iter().map(|bytes| bytes.as_u64().expect("bytes")).collect();
    let peak = memory["peak_bytes"].as_u64().expect("bytes");
    let at = memory["peak_position"].as_u64().expect("a place") as usize;
    assert_eq!((alive[at], alive.iter().max().copied()), (peak, Some(peak)));
    assert!(peak <= sum(list(memory, "parts"), "bytes") && peak >= 2 * 3 * 4 * 4, "{peak}");
    for value in list(memory, "values") {
        let number = |field: &str| value[field].as_u64().expect("a number");
        let part = &list(memory, "parts")[number("part") as usize];
        assert!(number("offset") + number("bytes") <= part["bytes"].as_u64().expect("bytes"), "{value}");
        assert!(number("first") <= number("last") && (number("last") as usize) < alive.len(), "{value}");
    }
}

#[test]
fn a_trace_has_the_times_of_the_table() {
    let folder = blocks("times");
    let args = ["profile", "blocks.pte", "--runs", "4", "--json", "--etdump", "a.etdp"];
    let (table, trace) = (document(&folder, &args), document(&folder, &["profile", "a.etdp", "--json"]));
    assert_eq!((list(&trace, "nodes").is_empty(), trace["runs"].as_u64()), (false, Some(4)));
    let times = |profile: &Value, of: fn(&str) -> bool| {
        let rows = list(profile, "nodes").iter().filter(|row| of(row["name"].as_str().unwrap_or_default()));
        let fields = ["median_ns", "min_ns", "max_ns", "lower_quartile_ns"];
        let mut times: Vec<Vec<u64>> =
            rows.map(|row| fields.iter().map(|field| row[*field].as_u64().expect("a time")).collect()).collect();
        times.sort();
        times
    };
    let own = |name: &str| !["OPERATOR_CALL", "DELEGATE_CALL"].contains(&name);
    let off = times(&table, own).into_iter().flatten().zip(times(&trace, own).into_iter().flatten());
    // The clock of the trace is another one, which stands still now and then.
    assert!(off.clone().count() > 8 && off.clone().all(|(a, b)| a.abs_diff(b) <= 1), "{:?}", off.collect::<Vec<_>>());
    let named = |row: &&Value| row["name"].as_str().is_some_and(|name| name.contains("(node 1)"));
    assert!(list(&trace, "nodes").iter().any(|row| named(&row)), "{trace}");
}

#[test]
fn values_are_recorded_with_the_outputs_of_the_run() {
    let folder = blocks("values");
    let args = ["run", "blocks.pte", "--random", "1", "-o", "out.bin", "--etdump", "a.etdp", "--debug-buffer", "a.bin"];
    done(&folder, &args);
    let (out, buffer) = (folder.read("out.bin"), folder.read("a.bin"));
    // The outputs come last: three rows of two.
    assert_eq!((out.len(), buffer.ends_with(&out)), (24, true));
    let trace = document(&folder, &["inspect", "a.etdp", "--json"]);
    let values = list(&trace, "blocks").iter().map(|block| block["values"].as_u64().unwrap_or(0)).sum::<u64>();
    assert!(values > 9, "{trace}");
    done(&folder, &["verify", "a.etdp"]);
    // Without a file for values none are recorded.
    done(&folder, &["run", "blocks.pte", "--random", "1", "--etdump", "b.etdp"]);
    let trace = document(&folder, &["inspect", "b.etdp", "--json"]);
    assert!(list(&trace, "blocks").iter().all(|block| block["values"] == 0), "{trace}");
    // A file of values needs a trace that says what they are.
    status(&run(&folder, &["run", "blocks.pte", "--random", "1", "--debug-buffer", "c.bin"]), 2, &"no trace");
    assert!(!folder.path("c.bin").exists());
}

#[test]
fn every_replayed_run_is_a_block() {
    let folder = Folder::new("replayed");
    folder.take("models/mlp_portable.pte", "m.pte");
    folder.take("models/mlp_portable.safetensors", "m.safetensors");
    done(&folder, &["check", "m.pte", "m.safetensors", "--etdump", "m.etdp", "--debug-buffer", "m.bin"]);
    let checked = document(&folder, &["check", "m.pte", "m.safetensors", "--json"]);
    let trace = document(&folder, &["inspect", "m.etdp", "--json"]);
    let blocks = list(&trace, "blocks");
    let runs: Vec<Option<u64>> =
        blocks.iter().filter(|block| block["name"] == "Execute").map(|block| block["bundled_input"].as_u64()).collect();
    let want: Vec<Option<u64>> = (0..list(&checked, "runs").len() as u64).map(Some).collect();
    assert_eq!(runs, want);
}

/// The content of the elements of that name.
fn elements<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let (start, end) = (format!("<{name}"), format!("</{name}>"));
    let content = |part: &'p str| part.split_once('>')?.1.split_once(&*end).map(|(content, _)| content);
    page.split(&*start).skip(1).filter_map(content).collect()
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script><!--\u{2028}&amp;";
    let folder = blocks("hostile");
    done(&folder, &["dump", "blocks.pte", "-o", "m.json"]);
    let mut program: Value = serde_json::from_slice(&folder.read("m.json")).expect("JSON");
    program["program"]["execution_plan"][0]["name"] = hostile.into();
    folder.write("m.json", program.to_string());
    done(&folder, &["build", "m.json", "-o", "m.pte"]);
    done(&folder, &["profile", "m.pte", "--runs", "1", "--html", "page.html", "--folded", "stacks"]);
    done(&folder, &["compare", "m.pte", "--rewrites", "--html", "layers.html"]);
    for page in ["page.html", "layers.html"] {
        let page = String::from_utf8(folder.read(page)).expect("UTF-8");
        // The data and the script, and no more.
        assert_eq!(
            (page.matches("<script").count(), page.matches("</script").count(), page.matches("<!--").count()),
            (2, 2, 0)
        );
        let scripts = elements(&page, "script");
        let data: Value = serde_json::from_str(scripts[0]).expect("JSON");
        let method = data["method"].as_str().expect("a name");
        assert!(method.starts_with("</script><script>alert(1)</script><!--"), "{method}");
        assert!(!scripts[1].contains("alert"));
        assert!(elements(&page, "title")[0].starts_with("&lt;/script&gt;&lt;script&gt;alert(1)"));
        // Nothing is loaded from anywhere.
        assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline") && !page.contains("src="));
    }
    let stacks = String::from_utf8(folder.read("stacks")).expect("UTF-8");
    assert!(stacks.lines().all(|line| line.rsplit_once(' ').is_some_and(|(_, time)| time.parse::<u64>().is_ok())));
}

#[test]
fn traces_are_not_run() {
    let folder = blocks("not-run");
    for more in [&["--random", "1"][..], &["--etdump", "b.etdp"], &["-i", "1"]] {
        let args = [&["profile", "blocks.etdp"][..], more].concat();
        status(&run(&folder, &args), 2, &args);
    }
    status(&run(&folder, &["profile", "blocks.pte", "--etrecord", "blocks.pte", "--runs", "1"]), 1, &"no record");
    status(&run(&folder, &["profile", "blocks.pte", "--html", "-", "--folded", "-"]), 2, &"both");
}
