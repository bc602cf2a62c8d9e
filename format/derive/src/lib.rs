//! The derives of `edgepack-format`: `Table` and `Union` for the wire declaration of flatbuffers, `NamedData` and
//! `CompileSpecs` for structs of tensors and options.
//!
//! Use them through the modules of `edgepack_format` that document what they implement. The generated code only calls
//! into that crate, which it finds by the name the deriving crate's manifest gives it, or through the facade `edgepack`;
//! `#[table(crate = "path")]`, `#[named(crate = "path")]` and `#[spec(crate = "path")]` say otherwise.

mod case;
mod krate;
mod named;
mod spec;
mod table;
#[cfg(test)]
mod tests;
mod union;

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{DeriveInput, Ident, Lifetime, LitStr, Path};

/// Derives `edgepack_format::row::Table` for a struct whose fields carry `#[slot(N)]`.
///
/// `#[slot(N, default = V)]` gives a number another default than zero, `#[slot(N, align = A)]` aligns the first
/// element of a vector, `#[slot(N, page = A)]` makes writers align it and put it right behind the table while readers
/// take it anywhere, `#[slot(N, near)]` puts a small field between the two, `#[slot(N, name = "…")]` gives the schema's name where Rust's differs.
#[proc_macro_derive(Table, attributes(slot, table))]
pub fn derive_table(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, |input| table::derive(input, &Shape::of(input)?))
}

/// Derives `edgepack_format::row::Union` for an enum whose variants carry `#[tag(N)]` and hold one table each, and
/// whose last variant, `#[unknown]`, retains a tag without a name.
#[proc_macro_derive(Union, attributes(tag, unknown, table))]
pub fn derive_union(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, |input| union::derive(input, &Shape::of(input)?))
}

/// Derives `edgepack_format::named::NamedData` for a struct whose fields are tensors, numbers, lists of them, or structs
/// that derive it too. The module `edgepack_format::named` lists what fields and `#[named(…)]` may be.
#[proc_macro_derive(NamedData, attributes(named))]
pub fn derive_named_data(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, named::derive)
}

/// Derives `edgepack_format::spec::CompileSpecs` for a struct of options, or `edgepack_format::spec::SpecValue` for an
/// enum that is the value of one. The module `edgepack_format::spec` lists what fields and `#[spec(…)]` may be.
#[proc_macro_derive(CompileSpecs, attributes(spec))]
pub fn derive_compile_specs(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, spec::derive)
}

fn expand(
    input: proc_macro::TokenStream,
    derive: impl Fn(&DeriveInput) -> syn::Result<TokenStream>,
) -> proc_macro::TokenStream {
    let expanded = syn::parse::<DeriveInput>(input).and_then(|input| derive(&input));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// A name as a text: without the mark of a raw one.
fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Parts of the type's head that the derives of tables and unions need.
struct Shape {
    /// Path of the `edgepack-format` crate.
    krate: TokenStream,
    /// Lifetime of the file: the type's own, or a fresh one.
    lifetime: Lifetime,
    /// Generics of the trait impl: always the one lifetime.
    self_generics: TokenStream,
    /// Name in the schema.
    name: String,
}

impl Shape {
    fn of(input: &DeriveInput) -> syn::Result<Shape> {
        let mut krate = None;
        let mut name = input.ident.to_string();
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("table")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    let path: Path = meta.value()?.parse::<LitStr>()?.parse()?;
                    krate = Some(quote!(#path));
                    Ok(())
                } else if meta.path.is_ident("name") {
                    name = meta.value()?.parse::<LitStr>()?.value();
                    Ok(())
                } else {
                    Err(meta.error("expected `crate = \"path\"` or `name = \"Name\"`"))
                }
            })?;
        }
        if let Some(param) = input.generics.type_params().next() {
            return Err(syn::Error::new_spanned(param, "a row has no type parameters"));
        }
        let mut lifetimes = input.generics.lifetimes();
        let own = lifetimes.next().map(|param| param.lifetime.clone());
        if let Some(second) = lifetimes.next() {
            return Err(syn::Error::new_spanned(second, "a row has at most one lifetime: that of the file"));
        }
        let krate = krate.unwrap_or_else(krate::format);
        let self_generics = own.as_ref().map(|own| quote!(<#own>)).unwrap_or_default();
        let lifetime = own.unwrap_or_else(|| Lifetime::new("'__file", proc_macro2::Span::call_site()));
        Ok(Shape { krate, lifetime, self_generics, name })
    }
}
