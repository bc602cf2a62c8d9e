//! Content of a schema, and the calling convention that follows from it.
//!
//! Invariant: `values` holds the arguments, then the returns; `arguments` is how many of the former there are.

use alloc::vec::Vec;

use super::literal::Literal;
use crate::pte::KernelTypes;

/// An operator's schema, borrowed from its text.
#[derive(Clone, PartialEq, Debug)]
pub struct Schema<'a> {
    pub(super) full_name: &'a str,
    pub(super) name: &'a str,
    pub(super) overload: &'a str,
    pub(super) values: Vec<Argument<'a>>,
    pub(super) arguments: usize,
}

/// One argument or result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Argument<'a> {
    /// Its name; empty for a nameless result.
    pub name: &'a str,
    /// Kind of the argument, or of the items of the list.
    pub kind: ArgumentKind<'a>,
    /// True if the argument may be `None`.
    pub optional: bool,
    /// Set when it is a list.
    pub list: Option<List>,
    /// Value of the argument if a caller gives none.
    pub default: Option<Literal<'a>>,
    /// The alias set, such as `a` in `Tensor(a!)`; empty for none.
    pub alias: &'a str,
    /// True if the operator writes to it: the `!` of the alias set.
    pub mutated: bool,
    /// True if it is given by name only: after the `*`.
    pub kw_only: bool,
}

/// Notation of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List {
    /// The length of `int[2]`; a caller may give one item for all.
    pub len: Option<u32>,
    /// True if items may be `None`: the `?` of `Tensor?[]`.
    pub optional_items: bool,
}

/// The type of an argument, or of the items of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentKind<'a> {
    /// Tensor; a missing one is `None` only where the argument is optional.
    Tensor,
    /// Any number or bool.
    Scalar,
    /// Whole number of 64 bits.
    Int,
    /// An integer that may be computed at run time. Stored as any integer.
    SymInt,
    /// Number in double precision; calls may give an integer for it.
    Float,
    /// Truth value; calls may not give an integer for it.
    Bool,
    /// Text.
    Str,
    /// An element type; stored as an integer.
    ScalarType,
    /// A memory format; stored as an integer.
    MemoryFormat,
    /// A layout; stored as an integer.
    Layout,
    /// A device. Programs cannot hold one.
    Device,
    /// A random number generator. Programs cannot hold one.
    Generator,
    /// A type without a meaning here, by name.
    Other(&'a str),
}

/// Values after the arguments of the schema in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trailing {
    /// Nothing: the operator returns nothing.
    Nothing,
    /// Argument `N` once more: the out, or what is changed in place. A list of tensors is there as a second list with
    /// the same items; for what is changed in place, older exporters put a second tensor on the same memory.
    Again(usize),
    /// One list of all the tensors returned; for an out variant, its outs.
    List,
    /// A value of its own that receives the result.
    Result,
}

impl<'a> Schema<'a> {
    /// Namespace, name and overload: `aten::add.out`.
    pub fn full_name(&self) -> &'a str {
        self.full_name
    }

    /// Namespace and name: `aten::add`.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the name after the dot; empty for none.
    pub fn overload(&self) -> &'a str {
        self.overload
    }

    /// The arguments, outs included.
    pub fn args(&self) -> &[Argument<'a>] {
        self.values.get(..self.arguments).unwrap_or_default()
    }

    /// Returns the results, in order; outs are among the arguments.
    pub fn returns(&self) -> &[Argument<'a>] {
        self.values.get(self.arguments..).unwrap_or_default()
    }

    /// Returns whether the operator writes to this argument.
    pub fn is_mutated(&self, index: usize) -> bool {
        self.args().get(index).is_some_and(|arg| arg.mutated)
    }

    /// The arguments the operator writes to, by index.
    pub fn mutated(&self) -> impl Iterator<Item = usize> + '_ {
        self.args().iter().enumerate().filter(|(_, arg)| arg.mutated).map(|(index, _)| index)
    }

    /// The arguments that are only there to receive results, by index: mutated, and given by name only.
    pub fn outs(&self) -> impl Iterator<Item = usize> + '_ {
        self.args().iter().enumerate().filter(|(_, arg)| arg.is_out()).map(|(index, _)| index)
    }

    /// Returns the values after the arguments in a call.
    pub fn trailing(&self) -> Trailing {
        let mut outs = self.outs();
        match (outs.next(), outs.next()) {
            (Some(out), None) => return Trailing::Again(out),
            (Some(_), Some(_)) => return Trailing::List,
            (None, _) => {}
        }
        match self.returns() {
            [] => Trailing::Nothing,
            [single] => match self.args().iter().position(|arg| arg.mutated && arg.alias == single.alias) {
                Some(index) => Trailing::Again(index),
                None => Trailing::Result,
            },
            _ => Trailing::List,
        }
    }

    /// Number of values in a call: the arguments and what follows them.
    pub fn stack_len(&self) -> usize {
        self.arguments.saturating_add((self.trailing() != Trailing::Nothing) as usize)
    }

    /// Returns whether the value at this place of a call may have this tag of `KernelTypes`. False beyond the call's
    /// length.
    pub fn accepts(&self, index: usize, tag: u8) -> bool {
        if let Some(arg) = self.args().get(index) {
            return arg.accepts(tag);
        }
        if index != self.arguments {
            return false;
        }
        match self.trailing() {
            Trailing::Nothing => false,
            Trailing::Again(index) => self.args().get(index).is_some_and(|arg| arg.accepts(tag)),
            Trailing::List => tag == KernelTypes::TENSOR_LIST,
            // Exporters put a placeholder of any numeric kind there; running the operator replaces it.
            Trailing::Result => self.returns().first().is_some_and(|result| match result.kind {
                _ if result.accepts(tag) => true,
                ArgumentKind::Scalar
                | ArgumentKind::Int
                | ArgumentKind::SymInt
                | ArgumentKind::Float
                | ArgumentKind::Bool => {
                    result.list.is_none() && matches!(tag, KernelTypes::INT | KernelTypes::BOOL | KernelTypes::DOUBLE)
                }
                _ => false,
            }),
        }
    }
}

impl Argument<'_> {
    /// Returns whether the argument is only there to receive a result.
    pub fn is_out(&self) -> bool {
        self.mutated && self.kw_only
    }

    /// Returns whether a value with this tag of `KernelTypes` can be passed for it.
    ///
    /// A `float` may be an integer: exporters box a literal by its own type, and a computed number starts as an
    /// integer placeholder. A missing plain `Tensor` is an empty tensor, never null. Nothing is known about
    /// [`ArgumentKind::Other`], so it takes anything.
    pub fn accepts(&self, tag: u8) -> bool {
        use ArgumentKind as Kind;

        if tag == KernelTypes::NULL {
            return self.optional || matches!(self.kind, Kind::Other(_));
        }
        if let Some(list) = self.list {
            return match self.kind {
                Kind::Int | Kind::SymInt => tag == KernelTypes::INT_LIST,
                Kind::Float => tag == KernelTypes::DOUBLE_LIST,
                Kind::Bool => tag == KernelTypes::BOOL_LIST,
                Kind::Scalar => {
                    matches!(tag, KernelTypes::INT_LIST | KernelTypes::DOUBLE_LIST | KernelTypes::BOOL_LIST)
                }
                Kind::Tensor => {
                    tag == KernelTypes::TENSOR_LIST || (list.optional_items && tag == KernelTypes::OPTIONAL_TENSOR_LIST)
                }
                Kind::Other(_) => true,
                Kind::Str | Kind::ScalarType | Kind::MemoryFormat | Kind::Layout => false,
                Kind::Device | Kind::Generator => false,
            };
        }
        match self.kind {
            Kind::Tensor => tag == KernelTypes::TENSOR,
            Kind::Scalar => matches!(tag, KernelTypes::INT | KernelTypes::BOOL | KernelTypes::DOUBLE),
            Kind::Int | Kind::SymInt | Kind::ScalarType | Kind::MemoryFormat | Kind::Layout => tag == KernelTypes::INT,
            Kind::Float => matches!(tag, KernelTypes::INT | KernelTypes::DOUBLE),
            Kind::Bool => tag == KernelTypes::BOOL,
            Kind::Str => tag == KernelTypes::STRING,
            Kind::Device | Kind::Generator => false,
            Kind::Other(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Schema<'_> {
        Schema::parse(text).unwrap()
    }

    fn accepted(schema: &Schema<'_>, index: usize) -> Vec<u8> {
        (0..=255).filter(|tag| schema.accepts(index, *tag)).collect()
    }

    #[test]
    fn conventions() {
        for (text, trailing, len) in [
            ("n::a.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", Trailing::Again(1), 3),
            ("n::a.out(Tensor x, *, Tensor(a!)[] out) -> ()", Trailing::Again(1), 3),
            ("n::a.o(Tensor x, *, Tensor(a!) u, Tensor(b!) v) -> (Tensor(a!) u, Tensor(b!) v)", Trailing::List, 4),
            ("n::a_(Tensor(a!) x, Tensor y) -> Tensor(a!)", Trailing::Again(0), 3),
            ("n::a(Tensor x, int y) -> int", Trailing::Result, 3),
            ("n::a(Tensor x) -> (Tensor, Tensor)", Trailing::List, 2),
            ("n::a(Tensor(a!) x, Tensor y) -> ()", Trailing::Nothing, 2),
            ("n::a() -> ()", Trailing::Nothing, 0),
        ] {
            let schema = parse(text);
            assert_eq!((schema.trailing(), schema.stack_len()), (trailing, len), "{text}");
        }
    }

    #[test]
    fn running_statistics_are_mutated_but_no_outs() {
        let schema = parse("n::norm.out(Tensor x, Tensor(a!) mean, *, Tensor(d!) out) -> Tensor(d!)");
        assert_eq!(schema.mutated().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(schema.outs().collect::<Vec<_>>(), [2]);
        assert!(schema.is_mutated(1) && !schema.is_mutated(0) && !schema.is_mutated(9));
        assert_eq!(schema.trailing(), Trailing::Again(2));
    }

    #[test]
    fn accepted_tags() {
        let schema = parse(
            "n::a.out(Tensor a, Tensor? b, Scalar c, Scalar? d, int e, SymInt? f, float g, bool h, str? i, \
             ScalarType? j, MemoryFormat? k, int[1]? l, SymInt[] m, float[]? n, bool[3] o, Tensor[] p, Tensor?[] q, \
             Generator? r, Device s, Thing t, *, Tensor(a!) out) -> Tensor(a!)",
        );
        let expected: [&[u8]; 22] = [
            &[5],
            &[1, 5],
            &[2, 3, 4],
            &[1, 2, 3, 4],
            &[2],
            &[1, 2],
            &[2, 4],
            &[3],
            &[1, 6],
            &[1, 2],
            &[1, 2],
            &[1, 7],
            &[7],
            &[1, 8],
            &[9],
            &[10],
            &[10, 11],
            &[1],
            &[],
            &(0..=255).collect::<Vec<u8>>(),
            &[5],
            &[5],
        ];
        for (index, expected) in expected.into_iter().enumerate() {
            assert_eq!(accepted(&schema, index), expected, "argument {index}");
        }
        assert!(accepted(&schema, 22).is_empty());
    }

    #[test]
    fn results_may_hold_any_number() {
        assert_eq!(accepted(&parse("n::a(Tensor x) -> bool"), 1), [2, 3, 4]);
        assert_eq!(accepted(&parse("n::a(Tensor x) -> Tensor"), 1), [5]);
        assert_eq!(accepted(&parse("n::a(Tensor x) -> (Tensor, Tensor)"), 1), [10]);
        assert!(accepted(&parse("n::a(Tensor(a!) x) -> ()"), 1).is_empty());
    }
}
