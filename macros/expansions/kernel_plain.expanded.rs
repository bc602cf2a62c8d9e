pub(crate) fn scale<'a>(
    input: &Tensor<'a, f32>,
    by: f64,
    out: &mut TensorMut<'_, f32>,
) -> Result<(), KernelError> {
    Ok(())
}
///The operator `my::scale.out`, computed by [`scale`].
pub(crate) static SCALE: ::edgepack_executor::kernel::Kernel = {
    #[allow(elided_lifetimes_in_paths)]
    fn check(
        args: &::edgepack_executor::kernel::Prepare<'_>,
    ) -> ::core::result::Result<(), ::edgepack_executor::kernel::KernelError> {
        let _ = args;
        <Tensor<
            '_,
            f32,
        > as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Tensor,
        >>::check(args, 0usize, "self")?;
        <f64 as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Float,
        >>::check(args, 1usize, "by")?;
        <TensorMut<
            '_,
            f32,
        > as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Out,
        >>::check(args, 2usize, "out")?;
        ::core::result::Result::Ok(())
    }
    #[allow(elided_lifetimes_in_paths, unused_mut)]
    fn run(
        cx: &mut ::edgepack_executor::kernel::KernelContext<'_>,
    ) -> ::core::result::Result<(), ::edgepack_executor::kernel::KernelError> {
        let value = {
            let views = cx.views();
            let call = ::edgepack_executor::typed::Call::new(&views);
            let _ = call;
            let mut argument0 = <Tensor<
                '_,
                f32,
            > as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Tensor,
            >>::unpack(call, 0usize)?;
            let mut argument1 = <f64 as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Float,
            >>::unpack(call, 1usize)?;
            let mut argument2 = <TensorMut<
                '_,
                f32,
            > as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Out,
            >>::unpack(call, 2usize)?;
            let given = <Result<
                (),
                KernelError,
            > as ::edgepack_executor::typed::Given>::given(
                scale(&argument0, argument1, &mut argument2),
            );
            given?
        };
        <<Result<
            (),
            KernelError,
        > as ::edgepack_executor::typed::Given>::Value as ::edgepack_executor::typed::Returned<
            ::edgepack_executor::typed::kind::Nothing,
        >>::write(value, cx, 3usize)
    }
    fn prepare(
        args: &::edgepack_executor::kernel::Prepare<'_>,
    ) -> ::core::result::Result<
        ::std::boxed::Box<dyn ::edgepack_executor::kernel::Run>,
        ::edgepack_executor::kernel::KernelError,
    > {
        args.expect_len(4usize)?;
        ::edgepack_executor::typed::expect_static(args, 2usize, "out")?;
        check(args)?;
        ::core::result::Result::Ok(
            ::std::boxed::Box::new(
                run
                    as fn(
                        &mut ::edgepack_executor::kernel::KernelContext<'_>,
                    ) -> ::core::result::Result<
                        (),
                        ::edgepack_executor::kernel::KernelError,
                    >,
            ),
        )
    }
    ::edgepack_executor::kernel::Kernel {
        name: "my::scale.out",
        schema: "(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)",
        alias: ::edgepack_executor::kernel::Alias::Disjoint,
        is_pure: false,
        prepare,
    }
};
