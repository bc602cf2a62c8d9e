//! `#[kernel("…")]`.
//!
//! The schema is read here; whether a parameter can take its argument is asked of the compiler, by naming the
//! parameter's type in a trait of the argument's kind.

mod options;
mod parameters;

use edgepack_format::operators::{Argument, ArgumentKind, Schema, Trailing};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{GenericParam, Ident, ItemFn, ReturnType, TypeParam};

use crate::krate;
use options::Options;
use parameters::{Parameter, mentions};

pub fn expand(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options: Options = syn::parse2(attribute)?;
    let function: ItemFn = syn::parse2(item)?;
    let executor = krate::executor(options.krate.as_ref())?;
    let text = options.schema.value();
    let schema = Schema::parse(&text).map_err(|error| {
        let (before, after) = text.split_at_checked(error.position).unwrap_or((&text, ""));
        let message = format!("{} here: `{before}` ⟨here⟩ `{after}`", error.kind);
        syn::Error::new_spanned(&options.schema, message)
    })?;
    let kernel = Kernel::new(&options, &function, &schema, executor)?;
    let value = kernel.expand(&text)?;
    Ok(quote!(#function #value))
}

struct Kernel<'k> {
    options: &'k Options,
    function: &'k ItemFn,
    schema: &'k Schema<'k>,
    executor: TokenStream,
    parameters: Vec<Parameter>,
    /// The element type the function is generic over.
    element: Option<&'k TypeParam>,
}

impl<'k> Kernel<'k> {
    fn new(
        options: &'k Options,
        function: &'k ItemFn,
        schema: &'k Schema<'k>,
        executor: TokenStream,
    ) -> syn::Result<Self> {
        let signature = &function.sig;
        if let Some(token) = &signature.asyncness {
            return Err(syn::Error::new_spanned(token, "a kernel is not an async function"));
        }
        if let Some(token) = &signature.unsafety {
            return Err(syn::Error::new_spanned(token, "a kernel is a safe function"));
        }
        let mut element = None;
        for parameter in &signature.generics.params {
            match parameter {
                GenericParam::Lifetime(_) => {}
                GenericParam::Type(parameter) if element.is_none() => element = Some(parameter),
                other => {
                    let message = "a kernel is generic over one element type at most";
                    return Err(syn::Error::new_spanned(other, message));
                }
            }
        }
        match (element, &options.dtypes) {
            (Some(element), None) => {
                let message = "say for which element types: `dtypes(f32, …)` after the schema";
                return Err(syn::Error::new_spanned(element, message));
            }
            (None, Some(dtypes)) => {
                let message = "`dtypes` are for a function that is generic over its element type";
                return Err(syn::Error::new_spanned(&dtypes[0], message));
            }
            _ => {}
        }
        let parameters = Parameter::all(function)?;
        let args = schema.args();
        if parameters.len() != args.len() {
            let names: Vec<&str> = args.iter().map(|arg| arg.name).collect();
            let message = format!(
                "the schema has {} arguments ({}), the function has {} parameters",
                args.len(),
                names.join(", "),
                parameters.len()
            );
            return Err(syn::Error::new(signature.paren_token.span.join(), message));
        }
        Ok(Kernel { options, function, schema, executor, parameters, element })
    }

    fn expand(&self, text: &str) -> syn::Result<TokenStream> {
        let Kernel { executor, function, schema, .. } = self;
        let (typed, kernel) = (quote!(#executor::typed), quote!(#executor::kernel));
        let error = quote!(#kernel::KernelError);
        let name = schema.full_name();
        let tail = text.trim_start().strip_prefix(name).unwrap_or_default();
        let own = &function.sig.ident;
        let value = match &self.options.name {
            Some(name) => name.clone(),
            None => format_ident!("{}", own.unraw().to_string().to_uppercase(), span = own.span()),
        };
        let (vis, cfgs) = (&function.vis, function.attrs.iter().filter(|attr| attr.path().is_ident("cfg")));
        let doc = format!("The operator `{name}`, computed by [`{own}`].");

        let kinds = schema.args().iter().map(|arg| self.kind(arg, &typed)).collect::<syn::Result<Vec<_>>>()?;
        let types: Vec<_> = self.parameters.iter().map(|parameter| &parameter.ty).collect();
        // A type that does not fit is shown at the parameter.
        let traits: Vec<_> = self
            .parameters
            .iter()
            .zip(&kinds)
            .map(|(Parameter { ty, .. }, kind)| quote_spanned!(ty.span()=> <#ty as #typed::Argument<'_, #kind>>))
            .collect();
        let locals: Vec<_> = (0..types.len()).map(|index| format_ident!("argument{index}")).collect();
        let passed = self.parameters.iter().zip(&locals).map(|(parameter, local)| parameter.pass(local));
        let indices = 0..types.len();
        let again = indices.clone();
        let names = schema.args().iter().map(|arg| arg.name);
        let resize = self.resize(&typed)?;
        let (result, place) = self.result(&typed)?;
        let given = match &function.sig.output {
            ReturnType::Default => quote_spanned!(own.span()=> <() as #typed::Given>),
            ReturnType::Type(_, ty) => quote_spanned!(ty.span()=> <#ty as #typed::Given>),
        };
        let (generics, clause, call) = self.generics(executor);
        let arity = schema.stack_len();
        let fixed = self.fixed(&typed);
        let select = self.select(&typed, &kernel)?;

        Ok(quote! {
            #(#cfgs)*
            #[doc = #doc]
            #vis static #value: #kernel::Kernel = {
                #[allow(elided_lifetimes_in_paths)]
                fn check #generics (args: &#kernel::Prepare<'_>) -> ::core::result::Result<(), #error> #clause {
                    let _ = args;
                    #(#traits::check(args, #indices, #names)?;)*
                    ::core::result::Result::Ok(())
                }

                #[allow(elided_lifetimes_in_paths, unused_mut)]
                fn run #generics (cx: &mut #kernel::KernelContext<'_>) -> ::core::result::Result<(), #error> #clause {
                    #resize
                    let value = {
                        let views = cx.views();
                        let call = #typed::Call::new(&views);
                        let _ = call;
                        #(let mut #locals = #traits::unpack(call, #again)?;)*
                        let given = #given::given(#own #call (#(#passed),*));
                        given?
                    };
                    #result::write(value, cx, #place)
                }

                fn prepare(
                    args: &#kernel::Prepare<'_>,
                ) -> ::core::result::Result<::std::boxed::Box<dyn #kernel::Run>, #error> {
                    args.expect_len(#arity)?;
                    #fixed
                    #select
                }

                #kernel::Kernel { name: #name, schema: #tail, alias: #kernel::Alias::Disjoint, is_pure: false, prepare }
            };
        })
    }

    /// Generics of the inner functions, their bounds, and how the function itself is called from them.
    fn generics(&self, executor: &TokenStream) -> (TokenStream, TokenStream, TokenStream) {
        let Some(element) = self.element else { return (quote!(), quote!(), quote!()) };
        let ident = &element.ident;
        let told = self.function.sig.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let bounds = element.bounds.iter();
        let clause = quote!(where #ident: #executor::tensor::PodElement #(+ #bounds)*, #(#told),*);
        (quote!(<#ident>), clause, quote!(::<#ident>))
    }

    /// The kind of an argument, as a type.
    fn kind(&self, arg: &Argument<'_>, typed: &TokenStream) -> syn::Result<TokenStream> {
        let refuse = |why: &str| {
            let message = format!("argument `{}`: {why}", arg.name);
            Err(syn::Error::new_spanned(&self.options.schema, message))
        };
        let name = match (arg.kind, arg.list.is_some()) {
            (ArgumentKind::Tensor, false) if arg.mutated => "Out",
            (ArgumentKind::Tensor, true) if arg.mutated => {
                return refuse("a list of outs has no parameter type; write a `Kernel` by hand");
            }
            (ArgumentKind::Tensor, false) => "Tensor",
            (ArgumentKind::Tensor, true) => "TensorList",
            (ArgumentKind::Int | ArgumentKind::SymInt | ArgumentKind::MemoryFormat | ArgumentKind::Layout, false) => {
                "Int"
            }
            (ArgumentKind::Int | ArgumentKind::SymInt, true) => "Ints",
            (ArgumentKind::Float, false) => "Float",
            (ArgumentKind::Float, true) => "Floats",
            (ArgumentKind::Bool, false) => "Bool",
            (ArgumentKind::Bool, true) => "Bools",
            (ArgumentKind::Scalar, false) => "Scalar",
            (ArgumentKind::Str, false) => "Text",
            (ArgumentKind::ScalarType, false) => "Dtype",
            _ => return refuse("programs cannot hold a value of this type"),
        };
        let name = Ident::new(name, Span::call_site());
        Ok(match arg.optional {
            true => quote!(#typed::kind::Optional<#typed::kind::#name>),
            false => quote!(#typed::kind::#name),
        })
    }

    /// Returns the code that gives the outs their sizes.
    fn resize(&self, typed: &TokenStream) -> syn::Result<TokenStream> {
        if let Some(function) = &self.options.resize {
            return Ok(quote_spanned!(function.span()=> (#function)(cx)?;));
        }
        let Some(like) = &self.options.like else { return Ok(quote!()) };
        let args = self.schema.args();
        let found = args.iter().position(|arg| arg.name == like.value());
        let found = found.filter(|&found| {
            let arg = &args[found];
            arg.kind == ArgumentKind::Tensor && arg.list.is_none() && !arg.optional && !arg.is_out()
        });
        let Some(found) = found else {
            let message = format!("`{}` is not a tensor that the operator reads", like.value());
            return Err(syn::Error::new_spanned(like, message));
        };
        let outs = self.schema.outs();
        Ok(quote!(#(#typed::resize_like(cx, #outs, #found)?;)*))
    }

    /// Refuses outs whose sizes change, if nothing gives them their sizes.
    fn fixed(&self, typed: &TokenStream) -> TokenStream {
        if self.options.resize.is_some() || self.options.like.is_some() {
            return quote!();
        }
        let outs = self.schema.outs();
        let names = self.schema.outs().map(|out| self.schema.args()[out].name);
        quote!(#(#typed::expect_static(args, #outs, #names)?;)*)
    }

    /// The trait that writes the result, and its place.
    fn result(&self, typed: &TokenStream) -> syn::Result<(TokenStream, usize)> {
        let place = self.schema.args().len();
        let name = match (self.schema.trailing(), self.schema.returns()) {
            (Trailing::Result, [result]) if result.list.is_none() => match result.kind {
                ArgumentKind::Int | ArgumentKind::SymInt => "Int",
                ArgumentKind::Float => "Float",
                ArgumentKind::Bool => "Bool",
                ArgumentKind::Scalar => "Scalar",
                _ => return Err(self.new_tensor()),
            },
            (Trailing::Nothing | Trailing::Again(_), _) => "Nothing",
            (Trailing::List, _) if self.schema.outs().next().is_some() => "Nothing",
            _ => return Err(self.new_tensor()),
        };
        let name = Ident::new(name, Span::call_site());
        let span = match &self.function.sig.output {
            ReturnType::Default => self.function.sig.ident.span(),
            ReturnType::Type(_, ty) => ty.span(),
        };
        let ty = match &self.function.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, ty) => quote!(#ty),
        };
        let result = quote_spanned!(span=>
            <<#ty as #typed::Given>::Value as #typed::Returned<#typed::kind::#name>>
        );
        Ok((result, place))
    }

    fn new_tensor(&self) -> syn::Error {
        let message = "the operator returns a new value; a kernel writes tensors to outs (`Tensor(a!) out`), and returns \
                       numbers alone";
        syn::Error::new_spanned(&self.options.schema, message)
    }

    /// The end of `prepare`: picks the instance by element type, checks it, and boxes it.
    fn select(&self, typed: &TokenStream, kernel: &TokenStream) -> syn::Result<TokenStream> {
        let boxed = |instance: TokenStream| {
            quote! {
                check #instance (args)?;
                ::core::result::Result::Ok(::std::boxed::Box::new(
                    run #instance as fn(&mut #kernel::KernelContext<'_>) -> ::core::result::Result<(), #kernel::KernelError>,
                ))
            }
        };
        let (Some(element), Some(dtypes)) = (self.element, &self.options.dtypes) else { return Ok(boxed(quote!())) };
        let decides = self.parameters.iter().zip(self.schema.args()).position(|(parameter, arg)| {
            let tensor = arg.kind == ArgumentKind::Tensor && arg.list.is_none() && !arg.optional;
            tensor && mentions(&parameter.ty, &element.ident)
        });
        let Some(decides) = decides else {
            let message = format!("no tensor decides what `{}` is", element.ident);
            return Err(syn::Error::new_spanned(element, message));
        };
        let name = self.schema.args()[decides].name;
        let scalar = |ty| quote_spanned!(syn::Type::span(ty)=> #typed::scalar_type_of::<#ty>());
        let known: Vec<_> = dtypes.iter().map(scalar).collect();
        let instances = dtypes.iter().map(|ty| boxed(quote!(::<#ty>)));
        Ok(quote! {
            let found = args.tensor(#decides)?.meta.dtype;
            let plain = #typed::storage_type(found);
            #(if plain == #known {
                return { #instances };
            })*
            ::core::result::Result::Err(#typed::no_instance(#name, found, &[#(#known),*]))
        })
    }
}
