//! Functions and where they come from.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::call::Call;
use super::error::FunctionError;
use super::operand::Operand;

/// Something a node can call.
pub trait Function: Send {
    /// Reads the arguments and writes every element of the results.
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), FunctionError>;
}

/// Operands that a node calls a function with, in every run.
#[derive(Clone, Debug)]
pub struct Signature<'a> {
    /// Operands that are read, in the order of the call.
    pub arguments: Vec<&'a Operand>,
    /// Operands that are written, in the order of the call.
    pub results: Vec<&'a Operand>,
}

/// Source of functions.
pub trait FunctionTable {
    /// The function of a name for these arguments: `None` if there is none of this name, an error if it cannot take them.
    fn find(&self, name: &str, signature: &Signature<'_>) -> Result<Option<Box<dyn Function>>, FunctionError>;
}

impl<T: FunctionTable + ?Sized> FunctionTable for &T {
    fn find(&self, name: &str, signature: &Signature<'_>) -> Result<Option<Box<dyn Function>>, FunctionError> {
        (**self).find(name, signature)
    }
}

type Body = dyn Fn(&mut Call<'_>) -> Result<(), FunctionError> + Send + Sync;

/// Functions written in Rust, by name: a graph runs without a C compiler, and without code from the package.
///
/// ```
/// use edgepack_executor::mlf::RustFunctions;
/// let functions = RustFunctions::new().with("tvmgen_default_fused_nn_relu", |call| {
///     let x = call.argument(0)?.as_slice::<f32>()?;
///     for (y, x) in call.result(0)?.as_slice::<f32>()?.iter_mut().zip(x) {
///         *y = x.max(0.0);
///     }
///     Ok(())
/// });
/// assert!(format!("{functions:?}").contains("relu"));
/// ```
#[derive(Clone, Default)]
pub struct RustFunctions {
    by_name: HashMap<String, Arc<Body>>,
}

impl RustFunctions {
    /// No functions.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more; an earlier one of the same name is replaced.
    pub fn with(
        mut self,
        name: impl Into<String>,
        body: impl Fn(&mut Call<'_>) -> Result<(), FunctionError> + Send + Sync + 'static,
    ) -> Self {
        self.by_name.insert(name.into(), Arc::new(body));
        self
    }
}

struct RustFunction(Arc<Body>);

impl Function for RustFunction {
    fn call(&mut self, call: &mut Call<'_>) -> Result<(), FunctionError> {
        (self.0)(call)
    }
}

impl FunctionTable for RustFunctions {
    fn find(&self, name: &str, _: &Signature<'_>) -> Result<Option<Box<dyn Function>>, FunctionError> {
        Ok(self.by_name.get(name).map(|body| Box::new(RustFunction(body.clone())) as Box<dyn Function>))
    }
}

impl fmt::Debug for RustFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<&String> = self.by_name.keys().collect();
        names.sort();
        f.debug_tuple("RustFunctions").field(&names).finish()
    }
}
