//! `#[derive(Table)]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Expr, Fields, Ident, LitInt, LitStr, Type};

use crate::Shape;

struct Field<'f> {
    ident: &'f Ident,
    ty: &'f Type,
    name: String,
    slot: u16,
    default: Option<Expr>,
    align: Option<LitInt>,
    page: Option<LitInt>,
    near: bool,
}

impl<'f> Field<'f> {
    fn parse(field: &'f syn::Field) -> syn::Result<Self> {
        let Some(ident) = &field.ident else {
            return Err(syn::Error::new_spanned(field, "fields of a row have names"));
        };
        let mut attrs = field.attrs.iter().filter(|attr| attr.path().is_ident("slot"));
        let Some(attr) = attrs.next() else {
            return Err(syn::Error::new_spanned(field, "missing `#[slot(N)]`: the field's id in the schema"));
        };
        if let Some(second) = attrs.next() {
            return Err(syn::Error::new_spanned(second, "a field has one slot"));
        }
        let name = ident.to_string();
        let ty = &field.ty;
        let mut parsed = Field { ident, ty, name, slot: 0, default: None, align: None, page: None, near: false };
        attr.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            parsed.slot = input.parse::<LitInt>()?.base10_parse()?;
            while !input.is_empty() {
                input.parse::<syn::Token![,]>()?;
                let key: Ident = input.parse()?;
                if key == "near" {
                    parsed.near = true;
                    continue;
                }
                input.parse::<syn::Token![=]>()?;
                match key.to_string().as_str() {
                    "default" => parsed.default = Some(input.parse()?),
                    "align" => parsed.align = Some(input.parse()?),
                    "page" => parsed.page = Some(input.parse()?),
                    "name" => parsed.name = input.parse::<LitStr>()?.value(),
                    _ => {
                        return Err(syn::Error::new_spanned(
                            key,
                            "expected `default`, `align`, `page`, `near` or `name`",
                        ));
                    }
                }
            }
            Ok(())
        })?;
        Ok(parsed)
    }

    fn constant(&self) -> Ident {
        format_ident!("{}", self.name.to_uppercase(), span = self.ident.span())
    }
}

pub fn derive(input: &DeriveInput, shape: &Shape) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(syn::Error::new_spanned(input, "a table is a struct; for a union derive `Union`"));
    };
    let fields = match &data.fields {
        Fields::Named(named) => named.named.iter().map(Field::parse).collect::<syn::Result<Vec<_>>>()?,
        Fields::Unit => Vec::new(),
        Fields::Unnamed(_) => return Err(syn::Error::new_spanned(input, "fields of a row have names")),
    };
    for (index, field) in fields.iter().enumerate() {
        if let Some(earlier) = fields.iter().take(index).find(|earlier| earlier.slot >= field.slot) {
            let message = format!("slots ascend: `{}` has slot {} already", earlier.ident, earlier.slot);
            return Err(syn::Error::new_spanned(field.ident, message));
        }
    }

    let Shape { krate, lifetime, self_generics, name } = shape;
    let row = quote!(#krate::row);
    let (vis, ident) = (&input.vis, &input.ident);
    let idents: Vec<_> = fields.iter().map(|field| field.ident).collect();
    let names: Vec<_> = fields.iter().map(|field| &field.name).collect();
    let types: Vec<_> = fields.iter().map(|field| field.ty).collect();
    let slots: Vec<_> = fields.iter().map(Field::constant).collect();
    let docs = names.iter().map(|name| format!("Slot of `{name}`."));
    let values = fields.iter().map(|field| {
        let slot = field.slot;
        let default = field.default.as_ref().map(|default| quote!(.or(#row::le_bytes((#default) as i64 as u64))));
        let align = field.align.as_ref().map(|align| quote!(.aligned(#align)));
        let page = field.page.as_ref().map(|page| quote!(.paged(#page)));
        quote!(#row::Slot::new(#slot)#default #align #page)
    });
    // The buffer grows towards its start: what is written last is right behind the table.
    let mut order: Vec<&Field<'_>> = fields.iter().collect();
    order.sort_by_key(|field| (field.near, field.page.is_some()));
    let written: Vec<_> = order.iter().map(|field| field.ident).collect();
    let written_slots: Vec<_> = order.iter().map(|field| field.constant()).collect();
    let construct = match data.fields {
        Fields::Unit => quote!(#ident),
        _ => quote!(#ident { #(#idents: table.get(Self::#slots)?),* }),
    };
    // A type without the lifetime cannot name it in an inherent constant, nor does it need to.
    let inherent =
        if self_generics.is_empty() { quote!(impl #ident) } else { quote!(impl #self_generics #ident #self_generics) };

    Ok(quote! {
        #[automatically_derived]
        #inherent {
            #(#[doc = #docs] #vis const #slots: #row::Slot<#types> = #values;)*
        }

        #[automatically_derived]
        impl<#lifetime> #row::Table<#lifetime> for #ident #self_generics {
            const DESC: &'static #row::TableDesc = &#row::TableDesc {
                name: #name,
                fields: &[#(#row::FieldDesc {
                    name: #names,
                    slot: Self::#slots.index,
                    kind: <#types as #row::Field<#lifetime>>::KIND,
                    align: Self::#slots.align,
                    default: Self::#slots.default,
                }),*],
            };

            #[inline]
            fn decode(table: #krate::wire::Table<#lifetime>) -> #krate::wire::Result<Self> {
                let _ = &table;
                ::core::result::Result::Ok(#construct)
            }

            #[inline]
            fn check(
                table: #krate::wire::Table<#lifetime>,
                checker: &mut #krate::check::Checker,
                path: &#krate::check::Path<'_>,
            ) {
                let _ = (&table, &checker, &path);
                #(<#types as #row::Field<#lifetime>>::check(&table, Self::#slots, checker, &path.field(#names));)*
            }

            fn encode<__S: #row::Sink>(&self, sink: &mut __S) -> ::core::result::Result<__S::Ref, __S::Error> {
                let mut fields = sink.field_list();
                #(#row::Field::write(&self.#written, Self::#written_slots, sink, &mut fields)?;)*
                let table = sink.table(&fields)?;
                sink.take_back(fields);
                ::core::result::Result::Ok(table)
            }
        }

        #[automatically_derived]
        impl<#lifetime> #row::Optional<#lifetime> for #ident #self_generics {
            const KIND: #row::FieldKind = #row::FieldKind::Table(<Self as #row::Table<#lifetime>>::DESC);

            #[inline]
            fn read(
                table: &#krate::wire::Table<#lifetime>,
                slot: u16,
            ) -> #krate::wire::Result<::core::option::Option<Self>> {
                table.table(slot)?.map(<Self as #row::Table<#lifetime>>::decode).transpose()
            }

            #[inline]
            fn check(
                table: &#krate::wire::Table<#lifetime>,
                slot: u16,
                _: usize,
                checker: &mut #krate::check::Checker,
                path: &#krate::check::Path<'_>,
            ) {
                checker.sub_table::<Self>(table, slot, path);
            }

            fn write<__S: #row::Sink>(
                &self,
                slot: u16,
                _: usize,
                sink: &mut __S,
                fields: &mut #krate::__alloc::vec::Vec<(u16, #row::FieldValue<__S::Ref>)>,
            ) -> ::core::result::Result<(), __S::Error> {
                let written = <Self as #row::Table<#lifetime>>::encode(self, sink)?;
                fields.push((slot, #row::FieldValue::Ref(written)));
                ::core::result::Result::Ok(())
            }
        }
    })
}
