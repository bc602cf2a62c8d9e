//! Tokens of instructions.
//!
//! Invariant: a token is made by `detect` alone, after the machine has said that it has the instructions.

/// Defines a token, its detection with a macro of the library of the language, and a function that its instructions may be
/// inlined into, for computations of a trait. The instructions are given twice: as one list, and apart.
macro_rules! token {
    ($(#[$doc:meta])* $name:ident, $detected:ident, $with:ident, $enable:literal, $($feature:tt)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) struct $name(());

        impl $name {
            /// The token, if the machine has the instructions.
            pub(super) fn detect() -> Option<Self> {
                ($($detected!($feature))&&*).then_some($name(()))
            }

            /// Does something with them, in a function of its own wherever it is called: inlined into a large one, it would not
            /// keep its numbers in registers. The call is through a pointer that nothing is known about, so that it is not
            /// inlined.
            #[inline]
            pub(super) fn run<W: $with>(self, with: W) -> W::Output {
                #[target_feature(enable = $enable)]
                fn enabled<W: $with>(token: $name, with: W) -> W::Output {
                    with.run(token)
                }
                let enabled: unsafe fn($name, W) -> W::Output = enabled;
                // SAFETY: the token exists, so the machine has these instructions.
                unsafe { std::hint::black_box(enabled)(self, with) }
            }
        }
    };
}

pub(super) use token;
