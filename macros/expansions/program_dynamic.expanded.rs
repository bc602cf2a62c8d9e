/**The program `../tests/data/corpus/models/dynbatch_portable.pte`, 4752 bytes:

- [`Forward`]: the method `forward`*/
#[allow(clippy::all, dead_code)]
pub mod dynbatch_portable {
    static FILE: &::edgepack_executor::embed::Aligned<[u8]> = &::edgepack_executor::embed::Aligned(
        *::core::include_bytes!(
            "/../tests/data/corpus/models/dynbatch_portable.pte"
        ),
    );
    /// Content of the file, its first byte at a multiple of 64.
    pub static BYTES: &[u8] = &FILE.0;
    /// Opens the program. Nothing of its data is copied.
    pub fn program() -> ::core::result::Result<
        ::edgepack_executor::embed::Program,
        ::edgepack_executor::embed::OpenError,
    > {
        ::edgepack_executor::embed::Program::from_static(BYTES)
    }
    /**The method `forward`, loaded.

| | |
|---|---|
| takes 0 | `f32[10, 8]`, sizes at most these |

| | |
|---|---|
| returns 0 | `f32[10, 4]`, sizes at most these |

*/
    pub struct Forward {
        method: ::edgepack_executor::embed::Method,
    }
    impl Forward {
        /// Its name in the program.
        pub const NAME: &'static str = "forward";
        /// Number of inputs, constants included.
        pub const INPUT_COUNT: usize = 1usize;
        /// Number of outputs.
        pub const OUTPUT_COUNT: usize = 1usize;
        /// Specifications of the inputs.
        pub const INPUTS: [::edgepack_executor::embed::ValueSpec; 1usize] = [
            ::edgepack_executor::embed::ValueSpec::Tensor {
                scalar_type: ::edgepack_executor::embed::ScalarType(6i8),
                sizes: &[10usize, 8usize],
                dim_order: &[0u8, 1u8],
                dynamic: true,
            },
        ];
        /// Specifications of the outputs.
        pub const OUTPUTS: [::edgepack_executor::embed::ValueSpec; 1usize] = [
            ::edgepack_executor::embed::ValueSpec::Tensor {
                scalar_type: ::edgepack_executor::embed::ScalarType(6i8),
                sizes: &[10usize, 4usize],
                dim_order: &[0u8, 1u8],
                dynamic: true,
            },
        ];
        /// Loads the method.
        pub fn load(
            registry: &::edgepack_executor::embed::Registry,
            options: &::edgepack_executor::embed::Options,
        ) -> ::core::result::Result<Self, ::edgepack_executor::embed::LoadError> {
            let method = ::edgepack_executor::embed::Method::load(
                &program()?,
                Self::NAME,
                registry,
                options,
            )?;
            ::core::result::Result::Ok(Forward { method })
        }
        /// Runs it. What it was traced with as a constant is passed as such.
        pub fn run(
            &mut self,
            input_0: ::edgepack_executor::embed::TensorView<'_, f32>,
        ) -> ::core::result::Result<
            ::edgepack_executor::embed::OutputTensor<'_, f32>,
            ::edgepack_executor::embed::RunError,
        > {
            let outputs = self
                .method
                .run::<
                    ::edgepack_executor::embed::Input<'_>,
                >(&[::edgepack_executor::embed::ToInput::to_input(&input_0)])?;
            let _ = &outputs;
            ::core::result::Result::Ok(
                ::edgepack_executor::embed::typed(&outputs, 0usize)?,
            )
        }
        /// The method itself: state, observers, memory.
        pub fn method(&mut self) -> &mut ::edgepack_executor::embed::Method {
            &mut self.method
        }
    }
}
