//! Options in the parentheses of `#[kernel(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Token, Type};

/// The schema and what follows it.
pub struct Options {
    pub schema: LitStr,
    /// Never empty.
    pub dtypes: Option<Vec<Type>>,
    pub like: Option<LitStr>,
    pub resize: Option<Path>,
    pub name: Option<Ident>,
    pub krate: Option<LitStr>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let schema = input.parse()?;
        let mut options = Options { schema, dtypes: None, like: None, resize: None, name: None, krate: None };
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
            if key == "dtypes" {
                let list;
                syn::parenthesized!(list in input);
                let types = Punctuated::<Type, Token![,]>::parse_terminated(&list)?;
                if types.is_empty() {
                    return Err(syn::Error::new_spanned(key, "a kernel for no element type"));
                }
                options.dtypes = Some(types.into_iter().collect());
                continue;
            }
            input.parse::<Token![=]>()?;
            match key.to_string().as_str() {
                "like" => options.like = Some(input.parse()?),
                "resize" => options.resize = Some(input.parse()?),
                "name" => options.name = Some(input.parse()?),
                _ => {
                    let message = "expected `dtypes(…)`, `like`, `resize`, `name` or `crate`";
                    return Err(syn::Error::new_spanned(key, message));
                }
            }
            if let (Some(like), Some(_)) = (&options.like, &options.resize) {
                return Err(syn::Error::new_spanned(like, "`like` or `resize`, not both"));
            }
        }
        Ok(options)
    }
}
