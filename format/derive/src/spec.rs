//! `#[derive(CompileSpecs)]`: for a struct the options, for an enum one option's value.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Expr, ExprLit, Fields, FieldsNamed, Ident, Lit, LitStr, Path, Type};

use crate::case::Case;
use crate::krate;

/// Attributes of a struct or enum.
struct Container {
    krate: TokenStream,
    case: Option<Case>,
    allow_unknown: bool,
    repr: Option<Ident>,
}

impl Container {
    fn parse(input: &DeriveInput) -> syn::Result<Self> {
        let mut path = None;
        let mut parsed = Container { krate: TokenStream::new(), case: None, allow_unknown: false, repr: None };
        let is_struct = matches!(input.data, Data::Struct(_));
        for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("spec")) {
            attr.parse_nested_meta(|meta| {
                if meta.path.is_ident("crate") {
                    let found: Path = meta.value()?.parse::<LitStr>()?.parse()?;
                    path = Some(quote!(#found));
                } else if meta.path.is_ident("rename_all") {
                    parsed.case = Some(Case::parse(&meta.value()?.parse()?)?);
                } else if meta.path.is_ident("allow_unknown") && is_struct {
                    parsed.allow_unknown = true;
                } else if meta.path.is_ident("repr") && !is_struct {
                    let name: LitStr = meta.value()?.parse()?;
                    if !matches!(&*name.value(), "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64") {
                        return Err(syn::Error::new_spanned(name, "expected an integer type such as \"u32\""));
                    }
                    parsed.repr = Some(name.parse()?);
                } else {
                    let other = if is_struct { "allow_unknown" } else { "repr" };
                    return Err(meta.error(format!("expected `rename_all`, `{other}` or `crate = \"path\"`")));
                }
                Ok(())
            })?;
        }
        parsed.krate = path.unwrap_or_else(krate::format);
        Ok(parsed)
    }
}

/// The key of a field or variant: what it says, or its name in the container's case.
fn key_of(ident: &Ident, key: Option<&LitStr>, case: Option<Case>) -> String {
    let name = crate::plain(ident);
    match (key, case) {
        (Some(key), _) => key.value(),
        (None, Some(case)) => case.apply(&name),
        (None, None) => name,
    }
}

/// Takes `key = "…"` or `rename = "…"`.
fn parse_key(meta: &ParseNestedMeta<'_>, into: &mut Option<LitStr>) -> syn::Result<bool> {
    if !meta.path.is_ident("key") && !meta.path.is_ident("rename") {
        return Ok(false);
    }
    let key: LitStr = meta.value()?.parse()?;
    if key.value().is_empty() {
        return Err(syn::Error::new_spanned(key, "a key is not empty"));
    }
    *into = Some(key);
    Ok(true)
}

fn distinct<'i>(names: impl Iterator<Item = (&'i Ident, &'i String)>) -> syn::Result<()> {
    let names: Vec<_> = names.collect();
    for (index, (ident, key)) in names.iter().enumerate() {
        if let Some((earlier, _)) = names.iter().take(index).find(|(_, earlier)| earlier == key) {
            return Err(syn::Error::new_spanned(ident, format!("`{earlier}` has the key `{key}` already")));
        }
    }
    Ok(())
}

/// Meaning of an absent key.
enum Absent {
    Error,
    Value(TokenStream),
}

struct Field<'f> {
    ident: &'f Ident,
    ty: &'f Type,
    key: String,
    absent: Absent,
    skip: bool,
}

impl<'f> Field<'f> {
    fn parse(field: &'f syn::Field, case: Option<Case>) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new_spanned(field, "options have names: they are the keys"));
        };
        let (mut key, mut absent, mut skip) = (None, Absent::Error, false);
        for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("spec")) {
            attr.parse_nested_meta(|meta| {
                if parse_key(&meta, &mut key)? {
                } else if meta.path.is_ident("default") {
                    absent = Absent::Value(match meta.value() {
                        Ok(value) => default(&value.parse()?, &field.ty)?,
                        Err(_) => quote!(::core::default::Default::default()),
                    });
                } else if meta.path.is_ident("skip") {
                    skip = true;
                } else {
                    return Err(meta.error("expected `key`, `default` or `skip`"));
                }
                Ok(())
            })?;
            if skip && (key.is_some() || matches!(absent, Absent::Value(_))) {
                return Err(syn::Error::new_spanned(attr, "a skipped field has no key and no default of its own"));
            }
            if option(&field.ty).is_some() && matches!(absent, Absent::Value(_)) {
                return Err(syn::Error::new_spanned(attr, "an absent `Option` is `None`"));
            }
        }
        Ok(Field { ident, ty: &field.ty, key: key_of(ident, key.as_ref(), case), absent, skip })
    }
}

/// A default as written: a text that is not for a `String` is the text of an expression.
fn default(value: &Expr, ty: &Type) -> syn::Result<TokenStream> {
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value else { return Ok(quote!(#value)) };
    if last(ty).is_some_and(|segment| segment.ident == "String") {
        return Ok(quote!(::core::convert::Into::into(#text)));
    }
    let value: Expr = text.parse()?;
    Ok(quote!(#value))
}

fn last(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// Returns the type inside an `Option`.
fn option(ty: &Type) -> Option<&Type> {
    let segment = last(ty).filter(|segment| segment.ident == "Option")?;
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

pub fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    if let Some(param) = input.generics.params.first() {
        return Err(syn::Error::new_spanned(param, "options own their values: no parameters"));
    }
    let container = Container::parse(input)?;
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => options(&input.ident, fields, &container),
            other => Err(syn::Error::new_spanned(
                if other.is_empty() { quote!(#input) } else { quote!(#other) },
                "options have names: they are the keys",
            )),
        },
        Data::Enum(data) => value(&input.ident, data, &container),
        Data::Union(_) => {
            Err(syn::Error::new_spanned(&input.ident, "options are a struct, their values may be an enum"))
        }
    }
}

fn options(ident: &Ident, fields: &FieldsNamed, container: &Container) -> syn::Result<TokenStream> {
    let Container { krate, case, allow_unknown, .. } = container;
    let spec = quote!(#krate::spec);
    let fields =
        fields.named.iter().map(|field| Field::parse(field, *case)).collect::<syn::Result<Vec<Field<'_>>>>()?;
    let options: Vec<&Field<'_>> = fields.iter().filter(|field| !field.skip).collect();
    distinct(options.iter().map(|field| (field.ident, &field.key)))?;

    let writes = options.iter().map(|Field { ident, ty, key, .. }| match option(ty) {
        Some(inner) => quote_spanned!(inner.span()=>
            specs.extend(self.#ident.as_ref().map(|value| #spec::row::<#inner>(#key, value)));
        ),
        None => quote_spanned!(ty.span()=> specs.push(#spec::row::<#ty>(#key, &self.#ident));),
    });
    // Options may be called like anything else in the function.
    let locals: Vec<_> = (0..options.len()).map(|index| format_ident!("__option{index}")).collect();
    let reads = options.iter().zip(&locals).map(|(Field { ty, key, absent, .. }, local)| match (option(ty), absent) {
        (Some(inner), _) => quote_spanned!(inner.span()=> let #local = reader.optional::<#inner>(#key);),
        (None, Absent::Error) => quote_spanned!(ty.span()=> let #local = reader.required::<#ty>(#key);),
        (None, Absent::Value(value)) => quote_spanned!(ty.span()=>
            let #local = reader.optional::<#ty>(#key).map(|value| value.unwrap_or_else(|| #value));
        ),
    });
    let keys = options.iter().map(|field| &field.key);
    let known = match allow_unknown {
        true => quote!(::core::option::Option::None),
        false => quote!(::core::option::Option::Some(&[#(#keys),*])),
    };
    let names: Vec<_> = options.iter().map(|field| field.ident).collect();
    let skipped = fields.iter().filter(|field| field.skip).map(|field| field.ident);
    Ok(quote! {
        #[automatically_derived]
        impl #spec::CompileSpecs for #ident {
            fn to_specs(&self) -> #krate::__alloc::vec::Vec<#krate::pte::CompileSpec<'static>> {
                let mut specs = #krate::__alloc::vec::Vec::new();
                #(#writes)*
                specs
            }

            fn from_specs<__S: #spec::AsSpec>(specs: &[__S]) -> ::core::result::Result<Self, #spec::SpecErrors> {
                let mut reader = #spec::Reader::new(specs, #known);
                #(#reads)*
                let options = || ::core::option::Option::Some(#ident {
                    #(#names: #locals?,)*
                    #(#skipped: ::core::default::Default::default(),)*
                });
                let options = options();
                reader.finish(options)
            }
        }
    })
}

fn value(ident: &Ident, data: &DataEnum, container: &Container) -> syn::Result<TokenStream> {
    let Container { krate, case, repr, .. } = container;
    let spec = quote!(#krate::spec);
    let mut variants = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(variant, "a value is one of a list: variants hold nothing"));
        }
        let mut key = None;
        for attr in variant.attrs.iter().filter(|attr| attr.path().is_ident("spec")) {
            attr.parse_nested_meta(|meta| match parse_key(&meta, &mut key)? {
                true if repr.is_some() => Err(meta.error("variants with a `repr` are numbers")),
                true => Ok(()),
                false => Err(meta.error("expected `key`")),
            })?;
        }
        variants.push((&variant.ident, key_of(&variant.ident, key.as_ref(), *case)));
    }
    if variants.is_empty() {
        return Err(syn::Error::new_spanned(ident, "an enum without variants has no value"));
    }
    distinct(variants.iter().map(|(ident, key)| (*ident, key)))?;
    let (idents, keys): (Vec<_>, Vec<_>) = variants.into_iter().unzip();
    let name = ident.to_string();
    let (expected, to_bytes, from_bytes) = match repr {
        Some(repr) => {
            let expected = quote!(#spec::one_of(
                ::core::concat!(#name, " as ", ::core::stringify!(#repr), ", little-endian"),
                &[#(&#krate::__alloc::string::ToString::to_string(&(#ident::#idents as #repr))),*],
            ));
            let from_bytes = quote! {
                let number = <#repr as #spec::SpecValue>::from_bytes(bytes)?;
                #(if number == #ident::#idents as #repr {
                    return ::core::option::Option::Some(#ident::#idents);
                })*
                ::core::option::Option::None
            };
            let numbers = quote!(match self { #(#ident::#idents => #ident::#idents as #repr),* });
            (expected, quote!(#spec::SpecValue::to_bytes(&#numbers)), from_bytes)
        }
        None => {
            let texts: Vec<_> = keys.iter().map(|key| syn::LitByteStr::new(key.as_bytes(), ident.span())).collect();
            let from_bytes = quote!(match bytes {
                #(#texts => ::core::option::Option::Some(#ident::#idents),)*
                _ => ::core::option::Option::None,
            });
            let to_bytes = quote!(match self { #(#ident::#idents => #texts.to_vec()),* });
            (quote!(#spec::one_of(#name, &[#(#keys),*])), to_bytes, from_bytes)
        }
    };
    Ok(quote! {
        #[automatically_derived]
        impl #spec::SpecValue for #ident {
            fn expected() -> #krate::__alloc::borrow::Cow<'static, str> {
                #expected
            }

            fn to_bytes(&self) -> #krate::__alloc::vec::Vec<u8> {
                #to_bytes
            }

            fn from_bytes(bytes: &[u8]) -> ::core::option::Option<Self> {
                #from_bytes
            }
        }
    })
}
