//! Path of `edgepack-format` in generated code: as the crate that derives depends on it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

/// The path of `edgepack-format`: under whatever name the manifest gives it, or through the facade `edgepack`. A crate
/// that has neither gets the usual name, and an error that says so.
pub fn format() -> TokenStream {
    if let Some(name) = dependency("edgepack-format", "edgepack_format") {
        return quote!(::#name);
    }
    match dependency("edgepack", "edgepack") {
        Some(name) => quote!(::#name::format),
        None => quote!(::edgepack_format),
    }
}

/// Returns the name that the crate being compiled has for a package; its tests and examples call the package itself by
/// its own name.
fn dependency(package: &str, own: &str) -> Option<Ident> {
    match crate_name(package).ok()? {
        FoundCrate::Itself => Some(Ident::new(own, Span::call_site())),
        FoundCrate::Name(name) => Some(Ident::new(&name, Span::call_site())),
    }
}
