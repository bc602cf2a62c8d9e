//! `#[derive(NamedData)]`.
//!
//! Generated code makes the place of each field and leaves the rest to the field's own `NamedValue`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Expr, Fields, Ident, Lifetime, LitInt, LitStr, Path, Token, Type, parse_quote};

use crate::krate;

/// Attributes that a struct has for all of its fields, and a field for itself.
#[derive(Default)]
struct Common {
    prefix: Option<LitStr>,
    align: Option<u64>,
    external: Option<LitStr>,
}

impl Common {
    /// Takes the attribute if it is one of these.
    fn parse(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<bool> {
        if meta.path.is_ident("prefix") {
            self.prefix = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("align") {
            let literal: LitInt = meta.value()?.parse()?;
            let align: u64 = literal.base10_parse()?;
            if !align.is_power_of_two() {
                return Err(syn::Error::new_spanned(literal, "an alignment is a power of two"));
            }
            self.align = Some(align);
        } else if meta.path.is_ident("external") {
            let tag: LitStr = meta.value()?.parse()?;
            let text = tag.value();
            if matches!(&*text, "" | "." | "..")
                || text.contains(|c: char| matches!(c, '/' | '\\' | ':') || c.is_control())
            {
                return Err(syn::Error::new_spanned(tag, "a tag is a plain file name"));
            }
            self.external = Some(tag);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns the calls on a place that say the same, but for the prefix.
    fn calls(&self) -> TokenStream {
        let align = self.align.map(|align| quote!(.aligned(#align)));
        let external = self.external.as_ref().map(|tag| quote!(.external(#tag)));
        quote!(#align #external)
    }
}

/// One size of a `shape`.
enum Size {
    Open,
    Known(Box<Expr>),
}

impl Parse for Size {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(Token![_]) {
            input.parse::<Token![_]>()?;
            return Ok(Size::Open);
        }
        input.parse().map(|size| Size::Known(Box::new(size)))
    }
}

struct Field<'f> {
    ident: &'f Ident,
    ty: &'f Type,
    common: Common,
    rename: Option<LitStr>,
    shape: Option<TokenStream>,
    skip: bool,
}

impl<'f> Field<'f> {
    fn parse(field: &'f syn::Field) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new_spanned(field, "fields of named data have names: they are the keys"));
        };
        let mut parsed =
            Field { ident, ty: &field.ty, common: Common::default(), rename: None, shape: None, skip: false };
        for attr in field.attrs.iter().filter(|attr| attr.path().is_ident("named")) {
            attr.parse_nested_meta(|meta| parsed.attribute(&meta))?;
            if parsed.skip && (parsed.rename.is_some() || parsed.shape.is_some() || parsed.common.prefix.is_some()) {
                return Err(syn::Error::new_spanned(attr, "a skipped field has no key"));
            }
            if parsed.rename.is_some() && parsed.common.prefix.is_some() {
                return Err(syn::Error::new_spanned(attr, "a field has a `rename` or a `prefix`, not both"));
            }
        }
        Ok(parsed)
    }

    fn attribute(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        if self.common.parse(meta)? {
            return Ok(());
        }
        if meta.path.is_ident("rename") {
            let key: LitStr = meta.value()?.parse()?;
            if key.value().is_empty() {
                return Err(syn::Error::new_spanned(key, "a key is not empty"));
            }
            self.rename = Some(key);
        } else if meta.path.is_ident("shape") {
            let list;
            let input = meta.value()?;
            syn::bracketed!(list in input);
            let sizes = Punctuated::<Size, Token![,]>::parse_terminated(&list)?;
            if sizes.iter().filter(|size| matches!(size, Size::Open)).count() > 1 {
                return Err(meta.error("one size at most is open: it follows from the number of elements"));
            }
            let sizes = sizes.iter().map(|size| match size {
                Size::Open => quote!(::core::option::Option::None),
                Size::Known(size) => quote!(::core::option::Option::Some(#size)),
            });
            self.shape = Some(quote!(const { &[#(#sizes),*] }));
        } else if meta.path.is_ident("skip") {
            self.skip = true;
        } else {
            return Err(meta.error("expected `rename`, `prefix`, `shape`, `align`, `external` or `skip`"));
        }
        Ok(())
    }

    fn key(&self) -> String {
        match (&self.rename, &self.common.prefix) {
            (Some(key), _) | (None, Some(key)) => key.value(),
            (None, None) => crate::plain(self.ident),
        }
    }

    /// The field's place, from the struct's.
    fn place(&self) -> TokenStream {
        let key = self.key();
        let place = match self.common.prefix {
            Some(_) => quote!(place.prefixed(#key)),
            None => quote!(place.field(#key)),
        };
        let calls = self.common.calls();
        let shape = self.shape.as_ref().map(|shape| quote!(.shaped(#shape)));
        quote!(#place #calls #shape)
    }
}

fn container(input: &DeriveInput) -> syn::Result<(TokenStream, Common)> {
    let mut path = None;
    let mut common = Common::default();
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("named")) {
        attr.parse_nested_meta(|meta| {
            if common.parse(&meta)? {
                Ok(())
            } else if meta.path.is_ident("crate") {
                let found: Path = meta.value()?.parse::<LitStr>()?.parse()?;
                path = Some(quote!(#found));
                Ok(())
            } else {
                Err(meta.error("expected `prefix`, `align`, `external` or `crate = \"path\"`"))
            }
        })?;
    }
    Ok((path.unwrap_or_else(krate::format), common))
}

pub fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(&input.ident, "named data are a struct: its fields are the keys"));
    };
    let fields = match &data.fields {
        Fields::Named(named) => named.named.iter().map(Field::parse).collect::<syn::Result<Vec<_>>>()?,
        Fields::Unit => Vec::new(),
        Fields::Unnamed(_) => {
            return Err(syn::Error::new_spanned(&data.fields, "fields of named data have names: they are the keys"));
        }
    };
    let stored: Vec<&Field<'_>> = fields.iter().filter(|field| !field.skip).collect();
    for (index, field) in stored.iter().enumerate() {
        let same = |earlier: &&&Field<'_>| earlier.key() == field.key() && field.common.prefix.is_none();
        if let Some(earlier) = stored.iter().take(index).find(same) {
            let message = format!("`{}` has the key `{}` already", earlier.ident, field.key());
            return Err(syn::Error::new_spanned(field.ident, message));
        }
    }

    let (krate, common) = container(input)?;
    let named = quote!(#krate::named);
    let mut lifetimes = input.generics.lifetimes();
    let own = lifetimes.next().map(|param| param.lifetime.clone());
    if let Some(second) = lifetimes.next() {
        return Err(syn::Error::new_spanned(second, "named data have at most one lifetime: that of what they borrow"));
    }
    let lifetime = own.clone().unwrap_or_else(|| Lifetime::new("'__data", proc_macro2::Span::call_site()));
    let mut generics = input.generics.clone();
    if own.is_none() {
        generics.params.insert(0, parse_quote!(#lifetime));
    }
    if generics.type_params().next().is_some() {
        // What a parameter must be follows from the fields it is used in.
        let clause = generics.make_where_clause();
        for Field { ty, .. } in &stored {
            clause.predicates.push(parse_quote!(#ty: #named::NamedValue<#lifetime>));
        }
    }
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let (_, type_generics, _) = input.generics.split_for_impl();
    let ident = &input.ident;

    let prefix = common.prefix.as_ref().map(|prefix| quote!(.prefixed(#prefix)));
    let calls = common.calls();
    let own_place = match prefix.is_some() || !calls.is_empty() {
        true => Some(quote!(let place = &place.clone() #prefix #calls;)),
        false => None,
    };
    let names: Vec<_> = stored.iter().map(|field| field.ident).collect();
    // Fields may be called like anything else in the function.
    let locals: Vec<_> = (0..stored.len()).map(|index| format_ident!("__field{index}")).collect();
    let places: Vec<_> = stored.iter().map(|field| field.place()).collect();
    // An error about a field's type is shown at the type.
    let values: Vec<_> = stored
        .iter()
        .map(|Field { ty, .. }| quote_spanned!(ty.span()=> <#ty as #named::NamedValue<#lifetime>>))
        .collect();
    let skipped = fields.iter().filter(|field| field.skip).map(|Field { ident, .. }| ident);
    let construct = match data.fields {
        Fields::Unit => quote!(#ident),
        _ => quote!(#ident {
            #(#names: #locals?,)*
            #(#skipped: ::core::default::Default::default(),)*
        }),
    };

    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #named::NamedValue<#lifetime> for #ident #type_generics #where_clause {
            fn put<'__s, __S: #named::Sink<'__s>>(
                &'__s self,
                place: &#named::Place<'_>,
                sink: &mut __S,
            ) -> ::core::result::Result<(), #named::StoreError<__S::Error>> {
                let _ = (place, &sink);
                #own_place
                #(#values::put(&self.#names, &#places, sink)?;)*
                ::core::result::Result::Ok(())
            }

            fn take(
                place: &#named::Place<'_>,
                lookup: &#lifetime dyn #named::Lookup,
                errors: &mut #named::NamedDataErrors,
            ) -> ::core::option::Option<Self> {
                let _ = (place, lookup, &errors);
                #own_place
                #(let #locals = #values::take(&#places, lookup, errors);)*
                ::core::option::Option::Some(#construct)
            }

            fn is_present(place: &#named::Place<'_>, lookup: &#lifetime dyn #named::Lookup) -> bool {
                let _ = (place, lookup);
                #own_place
                false #(|| #values::is_present(&#places, lookup))*
            }
        }

        #[automatically_derived]
        impl #impl_generics #named::NamedItem<#lifetime> for #ident #type_generics #where_clause {}

        #[automatically_derived]
        impl #impl_generics #named::NamedData<#lifetime> for #ident #type_generics #where_clause {}
    })
}
