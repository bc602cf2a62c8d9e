#[cfg(feature = "fill")]
fn fill<T: Copy>(mask: Option<Tensor<'_, T>>, mode: &str, out: TensorMut<'_, T>)
where
    T: Default,
{}
#[cfg(feature = "fill")]
///The operator `my::fill`, computed by [`fill`].
static OTHER: ::edgepack_executor::kernel::Kernel = {
    #[allow(elided_lifetimes_in_paths)]
    fn check<T>(
        args: &::edgepack_executor::kernel::Prepare<'_>,
    ) -> ::core::result::Result<(), ::edgepack_executor::kernel::KernelError>
    where
        T: ::edgepack_executor::tensor::PodElement + Copy,
        T: Default,
    {
        let _ = args;
        <Option<
            Tensor<'_, T>,
        > as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Optional<
                ::edgepack_executor::typed::kind::Tensor,
            >,
        >>::check(args, 0usize, "mask")?;
        <&str as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Text,
        >>::check(args, 1usize, "mode")?;
        <TensorMut<
            '_,
            T,
        > as ::edgepack_executor::typed::Argument<
            '_,
            ::edgepack_executor::typed::kind::Out,
        >>::check(args, 2usize, "out")?;
        ::core::result::Result::Ok(())
    }
    #[allow(elided_lifetimes_in_paths, unused_mut)]
    fn run<T>(
        cx: &mut ::edgepack_executor::kernel::KernelContext<'_>,
    ) -> ::core::result::Result<(), ::edgepack_executor::kernel::KernelError>
    where
        T: ::edgepack_executor::tensor::PodElement + Copy,
        T: Default,
    {
        (sizes)(cx)?;
        let value = {
            let views = cx.views();
            let call = ::edgepack_executor::typed::Call::new(&views);
            let _ = call;
            let mut argument0 = <Option<
                Tensor<'_, T>,
            > as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Optional<
                    ::edgepack_executor::typed::kind::Tensor,
                >,
            >>::unpack(call, 0usize)?;
            let mut argument1 = <&str as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Text,
            >>::unpack(call, 1usize)?;
            let mut argument2 = <TensorMut<
                '_,
                T,
            > as ::edgepack_executor::typed::Argument<
                '_,
                ::edgepack_executor::typed::kind::Out,
            >>::unpack(call, 2usize)?;
            let given = <() as ::edgepack_executor::typed::Given>::given(
                fill::<T>(argument0, argument1, argument2),
            );
            given?
        };
        <<() as ::edgepack_executor::typed::Given>::Value as ::edgepack_executor::typed::Returned<
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
        let found = args.tensor(2usize)?.meta.dtype;
        let plain = ::edgepack_executor::typed::storage_type(found);
        if plain == ::edgepack_executor::typed::scalar_type_of::<f32>() {
            return {
                check::<f32>(args)?;
                ::core::result::Result::Ok(
                    ::std::boxed::Box::new(
                        run::<f32>
                            as fn(
                                &mut ::edgepack_executor::kernel::KernelContext<'_>,
                            ) -> ::core::result::Result<
                                (),
                                ::edgepack_executor::kernel::KernelError,
                            >,
                    ),
                )
            };
        }
        if plain == ::edgepack_executor::typed::scalar_type_of::<half::f16>() {
            return {
                check::<half::f16>(args)?;
                ::core::result::Result::Ok(
                    ::std::boxed::Box::new(
                        run::<half::f16>
                            as fn(
                                &mut ::edgepack_executor::kernel::KernelContext<'_>,
                            ) -> ::core::result::Result<
                                (),
                                ::edgepack_executor::kernel::KernelError,
                            >,
                    ),
                )
            };
        }
        ::core::result::Result::Err(
            ::edgepack_executor::typed::no_instance(
                "out",
                found,
                &[
                    ::edgepack_executor::typed::scalar_type_of::<f32>(),
                    ::edgepack_executor::typed::scalar_type_of::<half::f16>(),
                ],
            ),
        )
    }
    ::edgepack_executor::kernel::Kernel {
        name: "my::fill",
        schema: "(Tensor? mask, str mode, *, Tensor(a!) out) -> Tensor(a!)",
        alias: ::edgepack_executor::kernel::Alias::Disjoint,
        is_pure: false,
        prepare,
    }
};
