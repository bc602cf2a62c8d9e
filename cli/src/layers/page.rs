//! A comparison as a page: how far apart every layer is, and a table to sort.

use serde::Serialize;

use super::report::Report;
use crate::html::Page;
use crate::status::Failure;

/// A report and what it is of.
#[derive(Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Compared<'a> {
    /// Name of the first file.
    pub left: &'a str,
    /// Name of the second file; absent if the first was compared with itself.
    pub right: Option<&'a str>,
    /// Name of the method.
    pub method: &'a str,
    /// Seed of random inputs, if any were.
    pub seed: Option<u64>,
    /// Distances of layers.
    #[serde(flatten)]
    pub report: &'a Report,
}

/// Writes the page.
pub fn page(compared: &Compared<'_>) -> Result<String, Failure> {
    let title =
        format!("{}, {} and {}", compared.method, compared.left, compared.right.unwrap_or("itself with rewrites"));
    let page = Page {
        title: &title,
        style: concat!(include_str!("../page.css"), include_str!("page.css")),
        body: include_str!("page.html"),
        script: concat!(include_str!("../page.js"), include_str!("page.js")),
    };
    Ok(page.with(compared)?)
}
