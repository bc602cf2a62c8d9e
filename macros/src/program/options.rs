//! Options in the parentheses of `include_program!(…)`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Token};

/// The path and what follows it.
pub struct Options {
    pub path: LitStr,
    pub operators: Option<Operators>,
    pub module: Option<Ident>,
    pub krate: Option<LitStr>,
}

/// The operators a program may call.
pub struct Operators {
    pub list: Vec<LitStr>,
    pub span: Span,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options { path: input.parse()?, operators: None, module: None, krate: None };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = Some(input.parse()?);
                continue;
            }
            let key: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "operators" => {
                    let list;
                    let bracket = syn::bracketed!(list in input);
                    let list = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?;
                    let span = bracket.span.join();
                    options.operators = Some(Operators { list: list.into_iter().collect(), span });
                }
                "module" => options.module = Some(input.parse()?),
                _ => return Err(syn::Error::new_spanned(key, "expected `operators`, `module` or `crate`")),
            }
        }
        Ok(options)
    }
}
