//! Replacement that a backend gives for a call of its delegate: values, and calls of operators on them.
//!
//! It is data without memory: where temporary values are, the method decides once it was rewritten. The loader checks it
//! all when it takes it over: kinds against schemas, what is written, lengths of constants.

use edgepack_format::notation::ValueName;
use edgepack_format::tensor::TensorLayout;
use edgepack_loader::Bytes;

use super::error::KernelError;
use super::kernel::OperatorRef;

/// A value of [`Instructions`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Local(pub(crate) u32);

/// A value beyond the arguments of the call.
pub(crate) enum LocalValue {
    Null,
    Int(i64),
    Bool(bool),
    Double(f64),
    Text(String),
    Ints(Vec<Local>),
    Doubles(Vec<f64>),
    Bools(Vec<bool>),
    Tensors(Vec<Local>),
    OptionalTensors(Vec<Option<Local>>),
    /// Memory while the instructions run; with `dynamic` the sizes are bounds.
    Temporary {
        layout: TensorLayout,
        dynamic: bool,
    },
    /// The first bytes of another tensor, in other sizes.
    View {
        of: Local,
        layout: TensorLayout,
        dynamic: bool,
    },
    Constant {
        layout: TensorLayout,
        bytes: Bytes,
    },
    Packed {
        layout: TensorLayout,
    },
}

/// A call of an operator.
pub(crate) struct LocalCall {
    pub operator: u32,
    pub args: Vec<Local>,
    pub node: u32,
}

/// Values and calls that stand for one call of a delegate.
///
/// ```
/// use std::sync::Arc;
///
/// use edgepack_executor::delegate::Instructions;
/// use edgepack_executor::kernel::Operator;
/// use edgepack_format::scalar::ScalarType;
/// use edgepack_format::tensor::TensorLayout;
///
/// /// `out = exp(exp(x))` for a call with the arguments `x` and `out`.
/// fn twice(exp: Arc<dyn Operator>) -> Instructions {
///     let mut all = Instructions::new(2);
///     let (x, out) = (all.argument(0), all.argument(1));
///     let between = all.temporary(TensorLayout::contiguous(ScalarType::FLOAT, &[8]).unwrap(), true);
///     let exp = all.operator(exp);
///     all.call(exp, &[x, between], 0);
///     all.call(exp, &[between, out], 1);
///     all
/// }
/// ```
#[derive(Default)]
pub struct Instructions {
    pub(crate) arguments: u32,
    pub(crate) values: Vec<LocalValue>,
    pub(crate) operators: Vec<OperatorRef<'static>>,
    pub(crate) calls: Vec<LocalCall>,
}

/// An operator of [`Instructions`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalOperator(u32);

impl Instructions {
    /// No instructions yet, for a call with this many arguments.
    pub fn new(arguments: usize) -> Self {
        Instructions { arguments: u32::try_from(arguments).unwrap_or(u32::MAX), ..Default::default() }
    }

    /// Argument `index` of the call. One that does not exist is refused when the instructions are taken over.
    pub fn argument(&self, index: usize) -> Local {
        Local(u32::try_from(index).ok().filter(|index| *index < self.arguments).unwrap_or(u32::MAX))
    }

    fn push(&mut self, value: LocalValue) -> Local {
        let index = self.arguments.saturating_add(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        self.values.push(value);
        Local(index)
    }

    /// `None`, for an argument that is left out.
    pub fn none(&mut self) -> Local {
        self.push(LocalValue::Null)
    }

    /// Adds a value that holds an integer, or the code of an element type.
    pub fn int(&mut self, value: i64) -> Local {
        self.push(LocalValue::Int(value))
    }

    /// Adds a value that holds a truth value.
    pub fn bool(&mut self, value: bool) -> Local {
        self.push(LocalValue::Bool(value))
    }

    /// Adds a value that holds a number in double precision.
    pub fn double(&mut self, value: f64) -> Local {
        self.push(LocalValue::Double(value))
    }

    /// Adds a value that holds text.
    pub fn text(&mut self, value: impl Into<String>) -> Local {
        self.push(LocalValue::Text(value.into()))
    }

    /// A list of integers.
    pub fn ints(&mut self, values: &[i64]) -> Local {
        let items = values.iter().map(|&value| self.int(value)).collect();
        self.push(LocalValue::Ints(items))
    }

    /// A list of doubles.
    pub fn doubles(&mut self, values: &[f64]) -> Local {
        self.push(LocalValue::Doubles(values.to_vec()))
    }

    /// A list of bools.
    pub fn bools(&mut self, values: &[bool]) -> Local {
        self.push(LocalValue::Bools(values.to_vec()))
    }

    /// A list of tensors.
    pub fn tensors(&mut self, items: &[Local]) -> Local {
        self.push(LocalValue::Tensors(items.to_vec()))
    }

    /// A list of tensors, some of which may be missing.
    pub fn optional_tensors(&mut self, items: &[Option<Local>]) -> Local {
        self.push(LocalValue::OptionalTensors(items.to_vec()))
    }

    /// A tensor that has memory while the instructions run. Its sizes are upper bounds if it is `dynamic`; a result that
    /// is larger is an error of the run, never another allocation. Memory counts against
    /// [`Limits`](edgepack_format::limits::Limits); temporaries that are not needed at the same time share it.
    pub fn temporary(&mut self, layout: TensorLayout, dynamic: bool) -> Local {
        self.push(LocalValue::Temporary { layout, dynamic })
    }

    /// Adds the first bytes of another tensor in other sizes. Both have the same bytes; an operator that may work
    /// in place ([`Alias::SameRange`](super::kernel::Alias)) resizes one to the other without moving any. A view of a constant
    /// is constant.
    pub fn view(&mut self, of: Local, layout: TensorLayout, dynamic: bool) -> Local {
        self.push(LocalValue::View { of, layout, dynamic })
    }

    /// Weights that an operator has packed, as an argument of its calls: a type and sizes for those who observe runs, without
    /// any bytes to read.
    pub fn packed(&mut self, layout: TensorLayout) -> Local {
        self.push(LocalValue::Packed { layout })
    }

    /// A constant tensor: as many bytes as the layout says, borrowed from where they are if they are aligned.
    pub fn constant(&mut self, layout: TensorLayout, bytes: Bytes) -> Local {
        self.push(LocalValue::Constant { layout, bytes })
    }

    /// An operator to call, which is added once: a kernel of a library (rewrites know those) or one of the backend.
    pub fn operator(&mut self, operator: impl Into<OperatorRef<'static>>) -> LocalOperator {
        self.operators.push(operator.into());
        LocalOperator(u32::try_from(self.operators.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }

    /// Calls an operator with the arguments of its schema. `node` names the part of the payload it came from, for errors and
    /// observers.
    pub fn call(&mut self, operator: LocalOperator, args: &[Local], node: u32) {
        self.calls.push(LocalCall { operator: operator.0, args: args.to_vec(), node });
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns whether nothing is called.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl Local {
    /// An error for a value that the instructions do not have.
    pub(crate) fn missing(self) -> KernelError {
        KernelError::new(
            edgepack_format::finding::ErrorCode::Internal,
            format!("the instructions have no {}", ValueName(self.0)),
        )
    }
}
