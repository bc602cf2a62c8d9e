//! A profile as a page: table, flame graph, timeline, memory.

use super::report::Profile;
use crate::html::Page;
use crate::status::Failure;

/// Writes the page.
pub fn page(profile: &Profile) -> Result<String, Failure> {
    let title = format!("{}, {}", profile.method.as_deref().unwrap_or("trace"), profile.file);
    let page = Page {
        title: &title,
        style: concat!(include_str!("../page.css"), include_str!("page.css")),
        body: include_str!("page.html"),
        script: concat!(include_str!("../page.js"), include_str!("page.js")),
    };
    Ok(page.with(profile)?)
}
