//! The parameters of a function: what is unpacked for each, and how it is passed on.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{FnArg, ItemFn, Type};

/// One parameter.
pub struct Parameter {
    /// Type that is unpacked, with its lifetimes left out.
    pub ty: Type,
    how: How,
}

/// Passing mode of an unpacked value.
#[derive(Clone, Copy)]
enum How {
    Value,
    Reference,
    Mutable,
}

impl Parameter {
    /// All of a function.
    pub fn all(function: &ItemFn) -> syn::Result<Vec<Parameter>> {
        function.sig.inputs.iter().map(Parameter::new).collect()
    }

    fn new(argument: &FnArg) -> syn::Result<Parameter> {
        let FnArg::Typed(typed) = argument else {
            return Err(syn::Error::new_spanned(argument, "a kernel is a free function"));
        };
        let (ty, how) = match &*typed.ty {
            // Text and slices are references by themselves.
            Type::Reference(reference) if is_unsized(&reference.elem) => (&*typed.ty, How::Value),
            Type::Reference(reference) if reference.mutability.is_some() => (&*reference.elem, How::Mutable),
            Type::Reference(reference) => (&*reference.elem, How::Reference),
            other => (other, How::Value),
        };
        Ok(Parameter { ty: syn::parse2(without_lifetimes(ty.to_token_stream()))?, how })
    }

    /// The expression that passes a local on.
    pub fn pass(&self, local: &Ident) -> TokenStream {
        match self.how {
            How::Value => quote!(#local),
            How::Reference => quote!(&#local),
            How::Mutable => quote!(&mut #local),
        }
    }
}

fn is_unsized(ty: &Type) -> bool {
    match ty {
        Type::Slice(_) => true,
        Type::Path(path) => path.path.is_ident("str"),
        _ => false,
    }
}

/// The same with `'_` for every lifetime that the function gives a name.
fn without_lifetimes(tokens: TokenStream) -> TokenStream {
    let mut lifetime = false;
    let plain = |token| match token {
        TokenTree::Group(group) => {
            let mut plain = Group::new(group.delimiter(), without_lifetimes(group.stream()));
            plain.set_span(group.span());
            TokenTree::Group(plain)
        }
        TokenTree::Ident(ident) if std::mem::take(&mut lifetime) && ident != "static" => {
            TokenTree::Ident(Ident::new("_", ident.span()))
        }
        other => {
            lifetime = matches!(&other, TokenTree::Punct(punct) if punct.as_char() == '\'');
            other
        }
    };
    tokens.into_iter().map(plain).collect()
}

/// Returns whether a type names another one.
pub fn mentions(ty: &Type, name: &Ident) -> bool {
    fn within(tokens: TokenStream, name: &Ident) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == *name,
            TokenTree::Group(group) => within(group.stream(), name),
            _ => false,
        })
    }
    within(ty.to_token_stream(), name)
}
