//! Macros that look into schemas and files while a program is compiled: `#[kernel]` and `include_program!`.
//!
//! Use them through `edgepack_executor`, whose modules `typed` and `embed` document what is generated. The generated code
//! only calls into that crate, which it finds by the name the using crate's manifest gives it, or through the facade
//! `edgepack`; `crate = "path"` says otherwise.

mod kernel;
mod krate;
mod program;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;

/// Makes a typed function a kernel: next to `fn scale` there is a `static SCALE: Kernel` for a registry's list.
///
/// The schema is compared with the signature when the program is compiled: one parameter per argument, each of a type
/// that such an argument can be. The module `edgepack_executor::typed` has the table, and an example.
///
/// After the schema:
///
/// - `dtypes(f32, i64, …)`: the function is generic over the element type, and there is an instance for each of these.
///   The first tensor whose parameter names the type decides which one runs.
/// - `like = "self"`: every out gets the sizes of this argument before the function runs.
/// - `resize = function`: a `fn(&mut KernelContext<'_>) -> Result<(), KernelError>` gives outs their sizes. Without
///   either, outs have the sizes of the program, and a program where these change is refused when it is loaded.
/// - `name = IDENT`: the name of the static.
/// - `crate = "path"`: where `edgepack_executor` is.
#[proc_macro_attribute]
pub fn kernel(attribute: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let expanded = kernel::expand(attribute.into(), item.clone().into());
    let refused = expanded.is_err();
    let mut tokens = answer(expanded);
    if refused {
        // The function is still there, so that nothing else is missing.
        tokens.extend(item);
    }
    tokens
}

/// Puts a verified program into the executable: `include_program!("model.pte")` is a module `model` with a struct for
/// each method.
///
/// The path is relative to the crate's manifest. The file is verified when the program is compiled; what is wrong with
/// it is a compile error. The module `edgepack_executor::embed` says what is generated, with an example.
///
/// After the path:
///
/// - `operators = ["aten::add.out", …]`: a program that calls any other operator is a compile error.
/// - `module = name`: the name of the module, if it is not to be that of the file.
/// - `crate = "path"`: where `edgepack_executor` is.
#[proc_macro]
pub fn include_program(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    answer(program::expand(input.into()))
}

fn answer(expanded: syn::Result<TokenStream>) -> proc_macro::TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
