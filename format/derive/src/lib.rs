//! `#[derive(Table)]` and `#[derive(Union)]`: the wire declaration of a flatbuffer table or union.
//!
//! Use them through `edgepack_format::row`, which documents what they implement. The generated code refers to
//! `::edgepack_format`; a crate that reaches it under another name says so with `#[table(crate = "path")]`.

mod table;
mod union;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Lifetime, LitStr, Path};

/// Derives `edgepack_format::row::Table` for a struct whose fields carry `#[slot(N)]`.
///
/// `#[slot(N, default = V)]` gives a number another default than zero, `#[slot(N, align = A)]` aligns the first
/// element of a vector, `#[slot(N, page = A)]` makes writers align it and put it right behind the table while readers
/// take it anywhere, `#[slot(N, name = "…")]` gives the schema's name where Rust's differs.
#[proc_macro_derive(Table, attributes(slot, table))]
pub fn derive_table(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, table::derive)
}

/// Derives `edgepack_format::row::Union` for an enum whose variants carry `#[tag(N)]` and hold one table each, and
/// whose last variant, `#[unknown]`, keeps the tag nobody has named.
#[proc_macro_derive(Union, attributes(tag, unknown, table))]
pub fn derive_union(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(input, union::derive)
}

fn expand(
    input: proc_macro::TokenStream,
    derive: fn(&DeriveInput, &Shape) -> syn::Result<TokenStream>,
) -> proc_macro::TokenStream {
    let parsed = syn::parse::<DeriveInput>(input);
    let expanded = parsed.and_then(|input| derive(&input, &Shape::of(&input)?));
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// What both derives need of the type's head.
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
        let mut krate = quote!(::edgepack_format);
        let mut name = input.ident.to_string();
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("table")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    let path: Path = meta.value()?.parse::<LitStr>()?.parse()?;
                    krate = quote!(#path);
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
        let self_generics = own.as_ref().map(|own| quote!(<#own>)).unwrap_or_default();
        let lifetime = own.unwrap_or_else(|| Lifetime::new("'__file", proc_macro2::Span::call_site()));
        Ok(Shape { krate, lifetime, self_generics, name })
    }
}
