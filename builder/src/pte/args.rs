//! Arguments of instructions: ids of values, and literals that become values.
//!
//! An id remembers what made it, so one that strays into another method or program is noticed where it is used.

use std::sync::atomic::{AtomicU64, Ordering};

use edgepack_format::pte::KernelTypes;
use edgepack_format::scalar::ScalarType;

/// The number of a builder or method: no two in a process have the same, and none ends up in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Owner(u64);

impl Owner {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Owner(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A value of one method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId {
    pub(crate) owner: Owner,
    pub(crate) index: usize,
}

/// A constant of a program, for use in any of its methods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConstantId {
    pub(crate) owner: Owner,
    pub(crate) index: usize,
}

/// A delegate of one method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DelegateId {
    pub(crate) owner: Owner,
    pub(crate) index: usize,
}

/// A place in one chain of a method, for jumps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId {
    pub(crate) owner: Owner,
    pub(crate) chain: usize,
    pub(crate) index: usize,
}

/// A tensor, by value or constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TensorArg {
    /// A value of the method.
    Value(ValueId),
    /// A constant of the program.
    Constant(ConstantId),
}

/// An item of a list of integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum IntArg {
    /// A number, boxed where it is used.
    Literal(i64),
    /// One that is computed.
    Value(ValueId),
}

/// An argument: a value, or what to make one of.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// A value of the method.
    Value(ValueId),
    /// A constant of the program.
    Constant(ConstantId),
    /// `None`.
    None,
    /// Whole number; a double where the schema asks for `float`.
    Int(i64),
    /// Truth value; one may stand for all items of a list of fixed length.
    Bool(bool),
    /// Number in double precision, NaN and infinities included.
    Double(f64),
    /// Text.
    Text(String),
    /// A list of integers.
    Ints(Vec<IntArg>),
    /// A list of bools.
    Bools(Vec<bool>),
    /// A list of doubles.
    Doubles(Vec<f64>),
    /// A list of tensors.
    Tensors(Vec<TensorArg>),
    /// A list of tensors, some missing.
    OptionalTensors(Vec<Option<TensorArg>>),
}

/// [`Arg`]s from anything that is one: `args![x, w, 1i64, vec![0i64, 1], None]`. `None` and `()` are the `None` of a schema.
///
/// ```
/// use edgepack_builder::args;
/// use edgepack_builder::pte::Arg;
///
/// let list = args![1i64, None, "floor", [0i64, 1], Some(0.5)];
/// assert_eq!((&list[1], &list[4]), (&Arg::None, &Arg::Double(0.5)));
/// ```
#[macro_export]
macro_rules! args {
    // Items so far, and what is left of the list. `None` has no type by itself, so it is taken as a word.
    (@list [$($done:expr,)*]) => { [$($done,)*] };
    (@list [$($done:expr,)*] None $(, $($rest:tt)*)?) => {
        $crate::args!(@list [$($done,)* $crate::pte::Arg::None,] $($($rest)*)?)
    };
    (@list [$($done:expr,)*] $next:expr $(, $($rest:tt)*)?) => {
        $crate::args!(@list [$($done,)* $crate::pte::Arg::from($next),] $($($rest)*)?)
    };
    ($($list:tt)*) => { $crate::args!(@list [] $($list)*) };
}

/// A list of tensors as one [`Arg`], of values and constants alike: `args![tensors![x, w], 0i64]`.
#[macro_export]
macro_rules! tensors {
    ($($tensor:expr),* $(,)?) => {
        $crate::pte::Arg::Tensors(::std::vec![$($crate::pte::TensorArg::from($tensor)),*])
    };
}

macro_rules! from {
    ($($from:ty, $value:ident => $to:expr;)*) => {
        $(impl From<$from> for Arg {
            fn from($value: $from) -> Self {
                $to
            }
        })*
    };
}

from! {
    ValueId, id => Arg::Value(id);
    (), _none => Arg::None;
    ConstantId, id => Arg::Constant(id);
    i64, number => Arg::Int(number);
    i32, number => Arg::Int(i64::from(number));
    bool, truth => Arg::Bool(truth);
    f64, number => Arg::Double(number);
    f32, number => Arg::Double(f64::from(number));
    &str, text => Arg::Text(text.to_owned());
    String, text => Arg::Text(text);
    ScalarType, dtype => Arg::Int(i64::from(dtype.0));
    &[i64], list => Arg::Ints(list.iter().map(|&number| IntArg::Literal(number)).collect());
    Vec<i64>, list => Arg::from(list.as_slice());
    &[bool], list => Arg::Bools(list.to_vec());
    Vec<bool>, list => Arg::Bools(list);
    &[f64], list => Arg::Doubles(list.to_vec());
    Vec<f64>, list => Arg::Doubles(list);
    Vec<ValueId>, list => Arg::Tensors(list.into_iter().map(TensorArg::Value).collect());
    Vec<TensorArg>, list => Arg::Tensors(list);
    Vec<Option<TensorArg>>, list => Arg::OptionalTensors(list);
    Vec<IntArg>, list => Arg::Ints(list);
    TensorArg, tensor => match tensor {
        TensorArg::Value(id) => Arg::Value(id),
        TensorArg::Constant(id) => Arg::Constant(id),
    };
}

impl<T> From<Option<T>> for Arg
where
    Arg: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Arg::None, Arg::from)
    }
}

impl<T, const N: usize> From<[T; N]> for Arg
where
    Arg: From<Vec<T>>,
{
    fn from(list: [T; N]) -> Self {
        Arg::from(Vec::from(list))
    }
}

impl From<ValueId> for TensorArg {
    fn from(id: ValueId) -> Self {
        TensorArg::Value(id)
    }
}

impl From<ConstantId> for TensorArg {
    fn from(id: ConstantId) -> Self {
        TensorArg::Constant(id)
    }
}

impl From<i64> for IntArg {
    fn from(number: i64) -> Self {
        IntArg::Literal(number)
    }
}

impl From<ValueId> for IntArg {
    fn from(id: ValueId) -> Self {
        IntArg::Value(id)
    }
}

/// Returns the name, for messages, of a kind of value, by its tag in [`KernelTypes`].
pub(crate) fn kind_name(tag: u8) -> &'static str {
    match tag {
        KernelTypes::NULL => "None",
        KernelTypes::INT => "an integer",
        KernelTypes::BOOL => "a bool",
        KernelTypes::DOUBLE => "a double",
        KernelTypes::TENSOR => "a tensor",
        KernelTypes::STRING => "text",
        KernelTypes::INT_LIST => "a list of integers",
        KernelTypes::DOUBLE_LIST => "a list of doubles",
        KernelTypes::BOOL_LIST => "a list of bools",
        KernelTypes::TENSOR_LIST => "a list of tensors",
        KernelTypes::OPTIONAL_TENSOR_LIST => "a list of optional tensors",
        _ => "an unknown value",
    }
}
