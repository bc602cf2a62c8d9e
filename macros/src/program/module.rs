//! The module a program becomes.

use edgepack_format::scalar::ScalarType;
use edgepack_format::tensor::TensorLayout;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, LitStr};

use super::options::Options;
use super::signature::{Method, Value};

pub fn expand(
    options: &Options,
    file: &str,
    len: usize,
    methods: &[Method],
    executor: &TokenStream,
) -> syn::Result<TokenStream> {
    let module = match &options.module {
        Some(module) => module.clone(),
        None => module_name(&options.path),
    };
    let embed = quote!(#executor::embed);
    let mut types: Vec<Ident> = Vec::new();
    let mut structs = Vec::new();
    for method in methods {
        let ident = type_name(&method.name);
        if types.contains(&ident) {
            let message = format!("two methods are called `{ident}` in Rust; load them by name");
            return Err(syn::Error::new_spanned(&options.path, message));
        }
        structs.push(structure(method, &ident, &embed));
        types.push(ident);
    }
    let lines =
        methods.iter().zip(&types).map(|(method, ident)| format!("- [`{ident}`]: the method `{}`", method.name));
    let doc = [format!("The program `{}`, {len} bytes:\n", options.path.value())].into_iter().chain(lines);
    let doc = doc.collect::<Vec<_>>().join("\n");

    Ok(quote! {
        #[doc = #doc]
        #[allow(clippy::all, dead_code)]
        pub mod #module {
            static FILE: &#embed::Aligned<[u8]> = &#embed::Aligned(*::core::include_bytes!(#file));

            /// Content of the file, its first byte at a multiple of 64.
            pub static BYTES: &[u8] = &FILE.0;

            /// Opens the program. Nothing of its data is copied.
            pub fn program() -> ::core::result::Result<#embed::Program, #embed::OpenError> {
                #embed::Program::from_static(BYTES)
            }

            #(#structs)*
        }
    })
}

/// A module is called like its file.
fn module_name(path: &LitStr) -> Ident {
    let path_text = path.value();
    let stem = std::path::Path::new(&path_text).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    identifier(&name, "program_", path.span())
}

/// A type is called like its method, in capitals.
fn type_name(method: &str) -> Ident {
    let words = method.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    identifier(&words.map(capital).collect::<String>(), "Method", proc_macro2::Span::call_site())
}

/// The name, with something before it if it is none by itself.
fn identifier(name: &str, before: &str, span: proc_macro2::Span) -> Ident {
    let own = syn::parse_str::<Ident>(name).is_ok();
    let name = if own { name.to_owned() } else { [before, name].concat() };
    Ident::new(&name, span)
}

fn structure(method: &Method, ident: &Ident, embed: &TokenStream) -> TokenStream {
    let name = &method.name;
    let doc = format!(
        "The method `{name}`, loaded.\n\n{}{}",
        table("takes", &method.inputs),
        table("returns", &method.outputs)
    );
    let (input_count, output_count) = (method.inputs.len(), method.outputs.len());
    let spec = |value: &Value| spec(value, embed);
    let (inputs, outputs) = (method.inputs.iter().map(spec), method.outputs.iter().map(spec));

    let mut parameters = Vec::new();
    let mut passed = Vec::new();
    for (index, value) in method.inputs.iter().enumerate() {
        let local = format_ident!("input_{index}");
        if let Value::Tensor { layout, dynamic } = value {
            let ty = input_type(layout, *dynamic, embed);
            parameters.push(quote!(#local: #ty));
            passed.push(match dynamic {
                true => quote!(#embed::ToInput::to_input(&#local)),
                false => quote!(#embed::input(&Self::INPUTS[#index], #local)),
            });
        } else {
            passed.push(quote!(#embed::constant(&Self::INPUTS[#index])));
        }
    }
    let returned = method.outputs.iter().map(|value| output_type(value, embed));
    let results = method.outputs.iter().enumerate().map(|(index, value)| output(index, value, embed));
    let (returned, results) = match output_count {
        1 => (quote!(#(#returned)*), quote!(#(#results)*)),
        _ => (quote!((#(#returned),*)), quote!((#(#results),*))),
    };

    quote! {
        #[doc = #doc]
        pub struct #ident {
            method: #embed::Method,
        }

        impl #ident {
            /// Its name in the program.
            pub const NAME: &'static str = #name;
            /// Number of inputs, constants included.
            pub const INPUT_COUNT: usize = #input_count;
            /// Number of outputs.
            pub const OUTPUT_COUNT: usize = #output_count;
            /// Specifications of the inputs.
            pub const INPUTS: [#embed::ValueSpec; #input_count] = [#(#inputs),*];
            /// Specifications of the outputs.
            pub const OUTPUTS: [#embed::ValueSpec; #output_count] = [#(#outputs),*];

            /// Loads the method.
            pub fn load(
                registry: &#embed::Registry,
                options: &#embed::Options,
            ) -> ::core::result::Result<Self, #embed::LoadError> {
                let method = #embed::Method::load(&program()?, Self::NAME, registry, options)?;
                ::core::result::Result::Ok(#ident { method })
            }

            /// Runs it. What it was traced with as a constant is passed as such.
            pub fn run(&mut self, #(#parameters),*) -> ::core::result::Result<#returned, #embed::RunError> {
                let outputs = self.method.run::<#embed::Input<'_>>(&[#(#passed),*])?;
                let _ = &outputs;
                ::core::result::Result::Ok(#results)
            }

            /// The method itself: state, observers, memory.
            pub fn method(&mut self) -> &mut #embed::Method {
                &mut self.method
            }
        }
    }
}

/// A list of values for people.
fn table(verb: &str, values: &[Value]) -> String {
    let rows = values.iter().enumerate().map(|(index, value)| format!("| {verb} {index} | {} |\n", shown(value)));
    let rows: String = rows.collect();
    if rows.is_empty() { String::new() } else { format!("| | |\n|---|---|\n{rows}\n") }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "`None`".to_owned(),
        Value::Int(value) => format!("the integer {value}"),
        Value::Bool(value) => format!("the bool {value}"),
        Value::Double(value) => format!("the number {value:?}"),
        Value::Text(value) => format!("the text `{}`", value.escape_debug()),
        Value::Tensor { layout, dynamic } => {
            let bound = if *dynamic { ", sizes at most these" } else { "" };
            format!("`{layout}`{bound}")
        }
    }
}

fn spec(value: &Value, embed: &TokenStream) -> TokenStream {
    match value {
        Value::Null => quote!(#embed::ValueSpec::Null),
        Value::Int(value) => quote!(#embed::ValueSpec::Int(#value)),
        Value::Bool(value) => quote!(#embed::ValueSpec::Bool(#value)),
        Value::Double(value) => {
            let bits = value.to_bits();
            quote!(#embed::ValueSpec::Double(f64::from_bits(#bits)))
        }
        Value::Text(value) => quote!(#embed::ValueSpec::Text(#value)),
        Value::Tensor { layout, dynamic } => {
            let (number, sizes, order) = (layout.scalar_type().0, layout.sizes(), layout.dim_order());
            quote!(#embed::ValueSpec::Tensor {
                scalar_type: #embed::ScalarType(#number),
                sizes: &[#(#sizes),*],
                dim_order: &[#(#order),*],
                dynamic: #dynamic,
            })
        }
    }
}

/// The Rust type of an element, if there is one.
fn element(scalar_type: ScalarType, embed: &TokenStream) -> Option<TokenStream> {
    Some(match scalar_type {
        ScalarType::BYTE => quote!(u8),
        ScalarType::CHAR => quote!(i8),
        ScalarType::SHORT => quote!(i16),
        ScalarType::INT => quote!(i32),
        ScalarType::LONG => quote!(i64),
        ScalarType::HALF => quote!(#embed::f16),
        ScalarType::FLOAT => quote!(f32),
        ScalarType::DOUBLE => quote!(f64),
        ScalarType::BOOL => quote!(#embed::Bool),
        ScalarType::BFLOAT16 => quote!(#embed::bf16),
        ScalarType::UINT16 => quote!(u16),
        ScalarType::UINT32 => quote!(u32),
        ScalarType::UINT64 => quote!(u64),
        _ => return None,
    })
}

/// An array in memory order where sizes do not change, else a view with its sizes.
fn input_type(layout: &TensorLayout, dynamic: bool, embed: &TokenStream) -> TokenStream {
    let element = element(layout.scalar_type(), embed);
    match (dynamic, element) {
        (true, Some(element)) => quote!(#embed::TensorView<'_, #element>),
        (true, None) => quote!(#embed::TensorView<'_>),
        (false, element) => array(layout, element),
    }
}

fn array(layout: &TensorLayout, element: Option<TokenStream>) -> TokenStream {
    let (bytes, count) = (layout.byte_len(), layout.element_count());
    match element {
        Some(element) => quote!(&[#element; #count]),
        None => quote!(&[u8; #bytes]),
    }
}

fn output_type(value: &Value, embed: &TokenStream) -> TokenStream {
    match value {
        Value::Null => quote!(()),
        Value::Int(_) => quote!(i64),
        Value::Bool(_) => quote!(bool),
        Value::Double(_) => quote!(f64),
        Value::Text(_) => quote!(&str),
        Value::Tensor { layout, dynamic } => match (dynamic, element(layout.scalar_type(), embed)) {
            (true, Some(element)) => quote!(#embed::OutputTensor<'_, #element>),
            (true, None) => quote!(#embed::TensorRef<'_>),
            (false, element) => array(layout, element),
        },
    }
}

fn output(index: usize, value: &Value, embed: &TokenStream) -> TokenStream {
    let function = match value {
        Value::Null => return quote!(()),
        Value::Int(_) => quote!(int),
        Value::Bool(_) => quote!(bool),
        Value::Double(_) => quote!(double),
        Value::Text(_) => quote!(text),
        Value::Tensor { layout, dynamic } => match (dynamic, element(layout.scalar_type(), embed)) {
            (true, Some(_)) => quote!(typed),
            (true, None) => quote!(tensor),
            (false, Some(_)) => quote!(array),
            (false, None) => quote!(bytes),
        },
    };
    quote!(#embed::#function(&outputs, #index)?)
}
