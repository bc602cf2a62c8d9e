//! Graphs as a page: boxes and lines to walk about in, and memory.

use super::graph::View;
use crate::html::Page;
use crate::status::Failure;

/// Writes the page.
pub fn page(view: &View) -> Result<String, Failure> {
    let page = Page {
        title: &view.file,
        style: concat!(include_str!("../page.css"), include_str!("page.css")),
        body: include_str!("page.html"),
        script: concat!(
            include_str!("../page.js"),
            include_str!("layout.js"),
            include_str!("page.js"),
            include_str!("panel.js")
        ),
    };
    Ok(page.with(view)?)
}
