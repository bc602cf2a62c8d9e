#[automatically_derived]
impl<'a> ::edgepack_format::named::NamedValue<'a> for Linear<'a> {
    fn put<'__s, __S: ::edgepack_format::named::Sink<'__s>>(
        &'__s self,
        place: &::edgepack_format::named::Place<'_>,
        sink: &mut __S,
    ) -> ::core::result::Result<(), ::edgepack_format::named::StoreError<__S::Error>> {
        let _ = (place, &sink);
        let place = &place.clone().prefixed("fc.").aligned(64u64).external("weights");
        <TensorView<
            'a,
            f32,
        > as ::edgepack_format::named::NamedValue<
            'a,
        >>::put(
            &self.weight,
            &place
                .field("weight")
                .shaped(const {
                    &[
                        ::core::option::Option::Some(2),
                        ::core::option::Option::None,
                        ::core::option::Option::Some(WIDTH),
                    ]
                }),
            sink,
        )?;
        <Option<
            &'a [f32],
        > as ::edgepack_format::named::NamedValue<
            'a,
        >>::put(&self.bias, &place.field("b").aligned(16u64).external("small"), sink)?;
        <Norm as ::edgepack_format::named::NamedValue<
            'a,
        >>::put(&self.norm, &place.prefixed(""), sink)?;
        <u8 as ::edgepack_format::named::NamedValue<
            'a,
        >>::put(&self.r#type, &place.field("type"), sink)?;
        ::core::result::Result::Ok(())
    }
    fn take(
        place: &::edgepack_format::named::Place<'_>,
        lookup: &'a dyn ::edgepack_format::named::Lookup,
        errors: &mut ::edgepack_format::named::NamedDataErrors,
    ) -> ::core::option::Option<Self> {
        let _ = (place, lookup, &errors);
        let place = &place.clone().prefixed("fc.").aligned(64u64).external("weights");
        let __field0 = <TensorView<
            'a,
            f32,
        > as ::edgepack_format::named::NamedValue<
            'a,
        >>::take(
            &place
                .field("weight")
                .shaped(const {
                    &[
                        ::core::option::Option::Some(2),
                        ::core::option::Option::None,
                        ::core::option::Option::Some(WIDTH),
                    ]
                }),
            lookup,
            errors,
        );
        let __field1 = <Option<
            &'a [f32],
        > as ::edgepack_format::named::NamedValue<
            'a,
        >>::take(&place.field("b").aligned(16u64).external("small"), lookup, errors);
        let __field2 = <Norm as ::edgepack_format::named::NamedValue<
            'a,
        >>::take(&place.prefixed(""), lookup, errors);
        let __field3 = <u8 as ::edgepack_format::named::NamedValue<
            'a,
        >>::take(&place.field("type"), lookup, errors);
        ::core::option::Option::Some(Linear {
            weight: __field0?,
            bias: __field1?,
            norm: __field2?,
            r#type: __field3?,
            calls: ::core::default::Default::default(),
        })
    }
    fn is_present(
        place: &::edgepack_format::named::Place<'_>,
        lookup: &'a dyn ::edgepack_format::named::Lookup,
    ) -> bool {
        let _ = (place, lookup);
        let place = &place.clone().prefixed("fc.").aligned(64u64).external("weights");
        false
            || <TensorView<
                'a,
                f32,
            > as ::edgepack_format::named::NamedValue<
                'a,
            >>::is_present(
                &place
                    .field("weight")
                    .shaped(const {
                        &[
                            ::core::option::Option::Some(2),
                            ::core::option::Option::None,
                            ::core::option::Option::Some(WIDTH),
                        ]
                    }),
                lookup,
            )
            || <Option<
                &'a [f32],
            > as ::edgepack_format::named::NamedValue<
                'a,
            >>::is_present(&place.field("b").aligned(16u64).external("small"), lookup)
            || <Norm as ::edgepack_format::named::NamedValue<
                'a,
            >>::is_present(&place.prefixed(""), lookup)
            || <u8 as ::edgepack_format::named::NamedValue<
                'a,
            >>::is_present(&place.field("type"), lookup)
    }
}
#[automatically_derived]
impl<'a> ::edgepack_format::named::NamedItem<'a> for Linear<'a> {}
#[automatically_derived]
impl<'a> ::edgepack_format::named::NamedData<'a> for Linear<'a> {}
