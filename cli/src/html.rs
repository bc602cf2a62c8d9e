//! Pages for browsers: one file each that needs nothing else and talks to nobody.
//!
//! Invariant: text that comes from a file reaches a page in two ways alone, escaped in its markup or as JSON in which no
//! character can end the element around it. The policy of the page allows its own script and style, by their digests, and
//! nothing else: what slipped through would not run.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A page: its script finds the data as JSON in the element `data` and shows it.
pub struct Page<'a> {
    /// Title, as text.
    pub title: &'a str,
    /// Style sheet, part of this program.
    pub style: &'static str,
    /// Content before the script runs, part of this program.
    pub body: &'static str,
    /// Script, part of this program.
    pub script: &'static str,
}

impl Page<'_> {
    /// Writes the page with its data.
    pub fn with<T: Serialize>(&self, data: &T) -> Result<String, serde_json::Error> {
        let Page { title, style, body, script } = self;
        let (title, policy, data) = (escape(title), policy(style, script), embed(data)?);
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{style}</style>\n</head>\n<body>\n{body}\n\
             <script type=\"application/json\" id=\"data\">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n"
        ))
    }
}

/// Escapes text for markup and for attributes in double or single quotes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that can stand inside of an element `script`: it neither ends the element nor begins a comment, and is a literal of
/// JavaScript, too.
pub fn embed<T: Serialize>(data: &T) -> Result<String, serde_json::Error> {
    let json = serde_json::to_string(data)?;
    let mut embedded = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // In JSON these are found in strings alone, where an escape stands for the character.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string does not fail.
                let _ = write!(embedded, "\\u{:04x}", u32::from(c));
            }
            c => embedded.push(c),
        }
    }
    Ok(embedded)
}

/// The policy of a page with this style and this script: these two, and nothing from anywhere.
fn policy(style: &str, script: &str) -> String {
    let digest = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest(script),
        digest(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page<'_> = Page { title: "a <b> & 'c'", style: "p{}", body: "<p></p>", script: "f()" };

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a href=\"x\">'&amp;"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;amp;");
        assert!(PAGE.with(&0).unwrap().contains("<title>a &lt;b&gt; &amp; &#39;c&#39;</title>"));
    }

    #[test]
    fn embedded_json_ends_no_element_and_reads_back() {
        let name = "</script><script>alert(1)</script><!--&\u{2028}\u{2029}\\<";
        let embedded = embed(&[name]).unwrap();
        for bad in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
            assert!(!embedded.contains(bad), "{bad:?} in {embedded}");
        }
        assert_eq!(serde_json::from_str::<[String; 1]>(&embedded).unwrap(), [name]);
        let page = PAGE.with(&[name]).unwrap();
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (2, 2), "{page}");
    }

    #[test]
    fn the_policy_names_the_digests_of_script_and_style() {
        let policy = policy("p{}", "f()");
        // As `printf 'f()' | openssl dgst -sha256 -binary | base64` says.
        assert!(policy.contains("script-src 'sha256-GcEEE0IkDzIP5EQ6DXZaDPORqT5RTBELX8Fyzyg9yvo='"), "{policy}");
        assert!(policy.contains("style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='"), "{policy}");
        assert!(policy.starts_with("default-src 'none';"));
        assert!(PAGE.with(&0).unwrap().contains(&policy));
    }
}
