//! `#[derive(Union)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, Ident, LitInt, Type};

use crate::Shape;

struct Variant<'v> {
    ident: &'v Ident,
    tag: u8,
    ty: &'v Type,
}

pub fn derive(input: &DeriveInput, shape: &Shape) -> syn::Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "a union is an enum; for a table derive `Table`"));
    };
    let mut variants = Vec::new();
    let mut unknown = None;
    for variant in &data.variants {
        let ty = match &variant.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => &fields.unnamed[0].ty,
            _ => return Err(syn::Error::new_spanned(variant, "a variant holds exactly one value")),
        };
        if variant.attrs.iter().any(|attr| attr.path().is_ident("unknown")) {
            unknown = Some(&variant.ident);
            continue;
        }
        let Some(attr) = variant.attrs.iter().find(|attr| attr.path().is_ident("tag")) else {
            return Err(syn::Error::new_spanned(variant, "missing `#[tag(N)]`, or `#[unknown]` on the last variant"));
        };
        let tag: u8 = attr.parse_args::<LitInt>()?.base10_parse()?;
        if tag == 0 {
            return Err(syn::Error::new_spanned(attr, "tag 0 is NONE: an absent union"));
        }
        variants.push(Variant { ident: &variant.ident, tag, ty });
    }
    let Some(unknown) = unknown else {
        return Err(syn::Error::new_spanned(input, "a union needs a variant `#[unknown] Name(u8)`"));
    };

    let Shape { krate, lifetime, self_generics, name } = shape;
    let row = quote!(#krate::row);
    let (impl_generics, own_generics, _) = input.generics.split_for_impl();
    let ident = &input.ident;
    let idents: Vec<_> = variants.iter().map(|variant| variant.ident).collect();
    let names: Vec<_> = idents.iter().map(|ident| ident.to_string()).collect();
    let tags: Vec<_> = variants.iter().map(|variant| variant.tag).collect();
    let types: Vec<_> = variants.iter().map(|variant| variant.ty).collect();
    let constants = variants.iter().map(|variant| {
        let (tag, doc) = (variant.tag, format!("The tag of `{}`.", variant.ident));
        let constant = Ident::new(&screaming(&variant.ident.to_string()), variant.ident.span());
        quote!(#[doc = #doc] pub const #constant: u8 = #tag;)
    });

    Ok(quote! {
        #[automatically_derived]
        #[allow(dead_code, reason = "a crate may use some of the tags only")]
        impl #impl_generics #ident #own_generics {
            #(#constants)*
        }

        #[automatically_derived]
        impl<#lifetime> #row::Union<#lifetime> for #ident #self_generics {
            const DESC: &'static #row::UnionDesc = &#row::UnionDesc {
                name: #name,
                variants: &[#((#tags, #names, <#types as #row::Table<#lifetime>>::DESC)),*],
            };

            #[inline]
            fn decode(tag: u8, table: #krate::wire::Table<#lifetime>) -> #krate::wire::Result<Self> {
                ::core::result::Result::Ok(match tag {
                    #(#tags => #ident::#idents(<#types as #row::Table<#lifetime>>::decode(table)?),)*
                    tag => #ident::#unknown(tag),
                })
            }

            #[inline]
            fn check(
                tag: u8,
                table: #krate::wire::Table<#lifetime>,
                checker: &mut #krate::check::Checker,
                path: &#krate::check::Path<'_>,
            ) {
                match tag {
                    #(#tags => checker.table::<#types>(table, path),)*
                    _ => {}
                }
            }

            fn tag(&self) -> u8 {
                match self {
                    #(#ident::#idents(_) => #tags,)*
                    #ident::#unknown(tag) => *tag,
                }
            }

            fn encode<__S: #row::Sink>(&self, sink: &mut __S) -> ::core::result::Result<__S::Ref, __S::Error> {
                match self {
                    #(#ident::#idents(row) => #row::Table::encode(row, sink),)*
                    // The value of an unknown variant is not retained; an empty table stands for it.
                    #ident::#unknown(_) => sink.table(&[]),
                }
            }
        }

        #[automatically_derived]
        impl<#lifetime> #row::Optional<#lifetime> for #ident #self_generics {
            const KIND: #row::FieldKind = #row::FieldKind::Union(<Self as #row::Union<#lifetime>>::DESC);

            #[inline]
            fn read(
                table: &#krate::wire::Table<#lifetime>,
                slot: u16,
            ) -> #krate::wire::Result<::core::option::Option<Self>> {
                #row::read_union(table, slot)
            }

            #[inline]
            fn check(
                table: &#krate::wire::Table<#lifetime>,
                slot: u16,
                _: usize,
                checker: &mut #krate::check::Checker,
                path: &#krate::check::Path<'_>,
            ) {
                checker.union::<Self>(table, slot, path);
            }

            fn write<__S: #row::Sink>(
                &self,
                slot: u16,
                _: usize,
                sink: &mut __S,
                fields: &mut #krate::__alloc::vec::Vec<(u16, #row::FieldValue<__S::Ref>)>,
            ) -> ::core::result::Result<(), __S::Error> {
                let written = <Self as #row::Union<#lifetime>>::encode(self, sink)?;
                let tag = <Self as #row::Union<#lifetime>>::tag(self);
                #row::push_union(slot, tag, written, fields);
                ::core::result::Result::Ok(())
            }
        }
    })
}

/// `IntList` as `INT_LIST`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if index > 0 && letter.is_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_uppercase());
    }
    out
}
