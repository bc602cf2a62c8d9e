//! Path of `edgepack-executor` in generated code: as the crate that uses the macro depends on it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, LitStr, Path};

/// The path of `edgepack-executor`: what the user says, else under whatever name the manifest gives it, or through the
/// facade `edgepack`. A crate that has neither gets the usual name, and an error that says so.
pub fn executor(told: Option<&LitStr>) -> syn::Result<TokenStream> {
    if let Some(told) = told {
        let path: Path = told.parse()?;
        return Ok(quote!(#path));
    }
    if let Some(name) = dependency("edgepack-executor", "edgepack_executor") {
        return Ok(quote!(::#name));
    }
    Ok(match dependency("edgepack", "edgepack") {
        Some(name) => quote!(::#name::executor),
        None => quote!(::edgepack_executor),
    })
}

/// Returns the name that the crate being compiled has for a package; its tests and examples call the package itself by
/// its own name.
fn dependency(package: &str, own: &str) -> Option<Ident> {
    match crate_name(package).ok()? {
        FoundCrate::Itself => Some(Ident::new(own, Span::call_site())),
        FoundCrate::Name(name) => Some(Ident::new(&name, Span::call_site())),
    }
}
