//! Pages in a browser: they show what they are to show, say nothing on its console, and names of files stay text. Those
//! that `docs` shows are fresh.
//!
//! Where there is no Chromium the tests say by name that they were skipped; `EDGEPACK_CHROMIUM` names one.

use std::io::{self, Write as _};
use std::process::Command;

use serde_json::Value;

use super::*;

/// Text that would be markup, or end the element around it.
const HOSTILE: &str =
    "</script><script>document.title='run'</script><img src=x onerror=alert(1)>\u{2028}\u{2029}&amp;\"'";

/// A browser, if there is one.
fn browser(test: &str) -> Option<String> {
    let named = env::var("EDGEPACK_CHROMIUM").ok();
    let known = ["chromium", "chromium-browser", "google-chrome", "chrome"].map(str::to_owned);
    let works = |name: &String| {
        let said = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        said.is_ok_and(|status| status.success())
    };
    let found = named.into_iter().chain(known).find(works);
    if found.is_none() {
        // Written past the harness, which shows nothing of tests that pass.
        let _ = writeln!(io::stderr(), "SKIPPED {test}: Chromium is not installed");
    }
    found
}

/// The document as it is after its script ran, and what the console says.
fn shown(browser: &str, folder: &Folder, page: &str) -> (String, Vec<String>) {
    let profile = format!("--user-data-dir={}", folder.path("browser").display());
    let flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr"];
    let more = ["--v=0", "--window-size=1400,1000", "--virtual-time-budget=4000", "--dump-dom"];
    let url = format!("file://{page}");
    let output = Command::new(browser).args(flags).args(more).args([&profile, &url]).output().expect("a browser");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = said.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    (String::from_utf8_lossy(&output.stdout).into_owned(), console)
}

/// Returns what a page shows; it may say nothing on the console.
#[track_caller]
fn quiet(browser: &str, folder: &Folder, page: &str) -> String {
    let path = folder.path(page).display().to_string();
    let (document, console) = shown(browser, folder, &path);
    assert!(console.is_empty(), "{page}: {console:?}");
    assert!(document.contains("</html>"), "{page}: {document}");
    document
}

/// Elements of a name that a page has after its script ran; the data and the script are left out.
fn count(document: &str, start: &str) -> usize {
    let (before, rest) = document.split_once("<script").expect("data");
    let behind = rest.rsplit_once("</script>").expect("a script").1;
    before.matches(start).count() + behind.matches(start).count()
}

#[test]
fn a_script_that_fails_is_noticed() {
    let Some(browser) = browser("a_script_that_fails_is_noticed") else { return };
    let folder = Folder::new("pages-fail");
    folder.write("page.html", "<!doctype html><script>throw new Error('planted')</script>");
    let path = folder.path("page.html").display().to_string();
    let (_, console) = shown(&browser, &folder, &path);
    assert!(console.len() == 1 && console[0].contains("planted"), "{console:?}");
}

#[test]
fn pages_show_themselves_in_a_browser() {
    let Some(browser) = browser("pages_show_themselves_in_a_browser") else { return };
    let folder = Folder::new("pages");
    for (from, to) in [
        ("models/classifier_portable.pte", "c.pte"),
        ("models/encoder_xnnpack_dynamic.pte", "e.pte"),
        ("llm_demo/story.pte", "l.pte"),
        ("trace/blocks.pte", "b.pte"),
        ("trace/blocks.etrecord", "b.etrecord"),
        ("edgetpu/left.tflite", "t.tflite"),
        ("edgetpu/alone.dwn", "d.dwn"),
        ("pt2/cond/model.pt2", "m.pt2"),
        ("bundled/mlp_two_cases.bpte", "m.bpte"),
        ("models/mlp_portable.pte", "p.pte"),
    ] {
        folder.take(from, to);
    }
    for file in ["c.pte", "e.pte", "l.pte", "t.tflite", "d.dwn", "m.pt2", "m.bpte"] {
        done(&folder, &["view", file, "-o", "view.html"]);
        let document = quiet(&browser, &folder, "view.html");
        assert!(document.contains(&format!("<h1 id=\"title\">{file}</h1>")), "{file}");
        assert!(count(&document, "data-item=") > 2 && count(&document, "<option") > 0, "{file}: {document}");
    }
    // Every node has its box, and memory its chart of every value.
    done(&folder, &["view", "p.pte", "-o", "view.html"]);
    let document = quiet(&browser, &folder, "view.html");
    assert_eq!(count(&document, "data-item="), 10, "{document}");
    done(&folder, &["view", "c.pte", "-o", "view.html"]);
    let document = quiet(&browser, &folder, "view.html");
    assert!(count(&document, "class=\"box\"") > 30 && document.contains("128.0 KiB hold values at the peak"));
    // One node of the graph of a delegate.
    done(&folder, &["view", "b.pte", "--etrecord", "b.etrecord", "-o", "view.html"]);
    assert!(quiet(&browser, &folder, "view.html").contains("blocks.0 Block"));
    let inside = quiet(&browser, &folder, "view.html#1/2");
    assert!(inside.contains("<h3>FullyConnected</h3>") && inside.contains("class=\"chosen\""), "{inside}");
    done(&folder, &["profile", "c.pte", "--runs", "2", "--html", "profile.html"]);
    let document = quiet(&browser, &folder, "profile.html");
    assert!(count(&document, "<tr") > 5 && count(&document, "class=\"box\"") > 20, "{document}");
    done(&folder, &["compare", "c.pte", "--rewrites", "--html", "layers.html"]);
    let document = quiet(&browser, &folder, "layers.html");
    assert!(count(&document, "<rect") > 5 && count(&document, "<th") == 10, "{document}");
}

/// A program in which names are markup.
fn hostile(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.take("trace/blocks.pte", "b.pte");
    done(&folder, &["dump", "b.pte", "-o", "b.json"]);
    let mut document: Value = serde_json::from_slice(&folder.read("b.json")).expect("JSON");
    let plan = &mut document["program"]["execution_plan"][0];
    plan["name"] = HOSTILE.into();
    plan["operators"][0]["name"] = format!("aten::{HOSTILE}").into();
    plan["delegates"][0]["id"] = HOSTILE.into();
    for value in plan["values"].as_array_mut().expect("values") {
        if value["val"]["val_type"] == "Tensor" || value["val"].get("Tensor").is_some() {
            value["val"]["Tensor"]["extra_tensor_info"] = serde_json::json!({ "fully_qualified_name": HOSTILE });
        }
    }
    folder.write("b.json", document.to_string());
    done(&folder, &["build", "b.json", "-o", "bad.pte", "--force"]);
    folder
}

#[test]
fn hostile_names_stay_text_in_a_graph() {
    let folder = hostile("pages-hostile");
    let viewed = run(&folder, &["view", "bad.pte", "-o", "view.html"]);
    assert!(viewed.status.code().is_some_and(|code| code <= 1), "{viewed:?}");
    let page = String::from_utf8(folder.read("view.html")).expect("UTF-8");
    assert_eq!(
        (page.matches("<script").count(), page.matches("</script").count(), page.matches("<img").count()),
        (2, 2, 0)
    );
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe-inline") && !page.contains(" src=\""));
    let run_as = |form: &str| String::from_utf8(run(&folder, &["view", "bad.pte", form]).stdout).expect("UTF-8");
    // In text for Graphviz a quote of a name does not end it.
    let dot = run_as("--dot");
    let is_whole = |line: &str| line.replace("\\\\", "").replace("\\\"", "").matches('"').count().is_multiple_of(2);
    assert!(dot.contains("&amp;\\\"'") && dot.lines().all(is_whole), "{dot}");
    let explorer: Value = serde_json::from_str(&run_as("--model-explorer")).expect("JSON");
    assert!(explorer.to_string().contains("onerror=alert(1)"));
    let Some(browser) = browser("hostile_names_stay_text_in_a_graph") else { return };
    let document = quiet(&browser, &folder, "view.html");
    assert!(!document.contains("<img") && document.contains("<title>bad.pte</title>"), "{document}");
    assert!(count(&document, "&lt;/script&gt;&lt;script&gt;") > 0, "{document}");
}

/// Files of `docs/examples`: the name, and the command line that makes it.
const EXAMPLES: [(&str, &[&str]); 10] = [
    ("view-classifier.html", &["view", "classifier.pte", "-o"]),
    ("view-encoder.html", &["view", "encoder.pte", "-o"]),
    ("view-language-model.html", &["view", "story.pte", "-o"]),
    ("profile-classifier.html", &["profile", "classifier.pte", "--threads", "1", "--runs", "5", "--html"]),
    ("profile-encoder.html", &["profile", "encoder.pte", "--threads", "1", "--runs", "5", "--html"]),
    ("profile-language-model.html", &["profile", "story.pte", "--threads", "1", "--runs", "5", "--html"]),
    ("compare-classifier.html", &["compare", "classifier.pte", "--rewrites", "--html"]),
    ("compare-encoder.html", &["compare", "encoder.pte", "--rewrites", "--html"]),
    ("compare-language-model.html", &["compare", "story.pte", "--rewrites", "--html"]),
    ("compare-quantised.html", &["compare", "float.pte", "quantised.pte", "--html"]),
];

/// Splits a page into what is not data, and data without what differs from run to run and from machine to machine.
fn lasting(page: &str) -> (String, Value) {
    let (before, rest) = page.split_once("id=\"data\">").expect("data");
    let (data, behind) = rest.split_once("</script>").expect("the end of the data");
    let mut data: Value = serde_json::from_str(data).expect("JSON");
    level(&mut data);
    (format!("{before}{behind}"), data)
}

/// Makes all numbers one, and sorts what is sorted by them.
fn level(value: &mut Value) {
    match value {
        Value::Number(_) | Value::Null => *value = Value::Null,
        Value::Object(fields) => {
            fields.remove("verdict");
            fields.values_mut().for_each(level);
        }
        Value::Array(items) => {
            items.iter_mut().for_each(level);
            items.sort_by_cached_key(Value::to_string);
        }
        _ => {}
    }
}

#[test]
fn pages_of_the_docs_are_fresh() {
    let folder = Folder::new("pages-docs");
    folder.take("models/classifier_portable.pte", "classifier.pte");
    folder.take("models/encoder_xnnpack_dynamic.pte", "encoder.pte");
    folder.take("llm_demo/story.pte", "story.pte");
    folder.take("models/cnn_xnnpack.pte", "float.pte");
    folder.take("models/cnn_xnnpack_int8.pte", "quantised.pte");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    for (name, line) in EXAMPLES {
        let output = run(&folder, &[line, &[name]].concat());
        assert!(output.status.code().is_some_and(|code| code <= 1), "{name}: {output:?}");
        let made = String::from_utf8(folder.read(name)).expect("UTF-8");
        let stored = fs::read_to_string(examples.join(name)).unwrap_or_default();
        let is_fresh = match line[0] {
            "view" => made == stored,
            _ => !stored.is_empty() && lasting(&made) == lasting(&stored),
        };
        if !is_fresh && env::var_os("EDGEPACK_BLESS").is_some() {
            fs::write(examples.join(name), &made).expect("an example");
        } else {
            assert!(is_fresh, "docs/examples/{name} is stale: .ci/generate -p edgepack-cli");
        }
        assert!(made.len() < 200_000, "{name}: {} bytes", made.len());
    }
    let Some(browser) = browser("pages_of_the_docs_are_fresh") else { return };
    for (name, _) in EXAMPLES {
        let path = examples.join(name).canonicalize().expect("an example").display().to_string();
        let (document, console) = shown(&browser, &folder, &path);
        assert!(console.is_empty() && count(&document, "<rect") > 5, "{name}: {console:?}");
    }
}
