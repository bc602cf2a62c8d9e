fn sum(a: i64, b: Option<f64>) -> f64 {
    a as f64 + b.unwrap_or(0.0)
}
///The operator `my::sum`, computed by [`sum`].
static SUM: edgepack::executor::kernel::Kernel = {
    #[allow(elided_lifetimes_in_paths)]
    fn check(
        args: &edgepack::executor::kernel::Prepare<'_>,
    ) -> ::core::result::Result<(), edgepack::executor::kernel::KernelError> {
        let _ = args;
        <i64 as edgepack::executor::typed::Argument<
            '_,
            edgepack::executor::typed::kind::Int,
        >>::check(args, 0usize, "a")?;
        <Option<
            f64,
        > as edgepack::executor::typed::Argument<
            '_,
            edgepack::executor::typed::kind::Optional<
                edgepack::executor::typed::kind::Float,
            >,
        >>::check(args, 1usize, "b")?;
        ::core::result::Result::Ok(())
    }
    #[allow(elided_lifetimes_in_paths, unused_mut)]
    fn run(
        cx: &mut edgepack::executor::kernel::KernelContext<'_>,
    ) -> ::core::result::Result<(), edgepack::executor::kernel::KernelError> {
        let value = {
            let views = cx.views();
            let call = edgepack::executor::typed::Call::new(&views);
            let _ = call;
            let mut argument0 = <i64 as edgepack::executor::typed::Argument<
                '_,
                edgepack::executor::typed::kind::Int,
            >>::unpack(call, 0usize)?;
            let mut argument1 = <Option<
                f64,
            > as edgepack::executor::typed::Argument<
                '_,
                edgepack::executor::typed::kind::Optional<
                    edgepack::executor::typed::kind::Float,
                >,
            >>::unpack(call, 1usize)?;
            let given = <f64 as edgepack::executor::typed::Given>::given(
                sum(argument0, argument1),
            );
            given?
        };
        <<f64 as edgepack::executor::typed::Given>::Value as edgepack::executor::typed::Returned<
            edgepack::executor::typed::kind::Float,
        >>::write(value, cx, 2usize)
    }
    fn prepare(
        args: &edgepack::executor::kernel::Prepare<'_>,
    ) -> ::core::result::Result<
        ::std::boxed::Box<dyn edgepack::executor::kernel::Run>,
        edgepack::executor::kernel::KernelError,
    > {
        args.expect_len(3usize)?;
        check(args)?;
        ::core::result::Result::Ok(
            ::std::boxed::Box::new(
                run
                    as fn(
                        &mut edgepack::executor::kernel::KernelContext<'_>,
                    ) -> ::core::result::Result<
                        (),
                        edgepack::executor::kernel::KernelError,
                    >,
            ),
        )
    }
    edgepack::executor::kernel::Kernel {
        name: "my::sum",
        schema: "(int a, float? b) -> float",
        alias: edgepack::executor::kernel::Alias::Disjoint,
        is_pure: false,
        prepare,
    }
};
