#[automatically_derived]
impl<'__data, T: Element, const N: usize> ::edgepack_format::named::NamedValue<'__data>
for Pair<T, N>
where
    T: Pod,
    [T; N]: ::edgepack_format::named::NamedValue<'__data>,
    Vec<T>: ::edgepack_format::named::NamedValue<'__data>,
{
    fn put<'__s, __S: ::edgepack_format::named::Sink<'__s>>(
        &'__s self,
        place: &::edgepack_format::named::Place<'_>,
        sink: &mut __S,
    ) -> ::core::result::Result<(), ::edgepack_format::named::StoreError<__S::Error>> {
        let _ = (place, &sink);
        <[T; N] as ::edgepack_format::named::NamedValue<
            '__data,
        >>::put(&self.left, &place.field("left"), sink)?;
        <Vec<
            T,
        > as ::edgepack_format::named::NamedValue<
            '__data,
        >>::put(&self.right, &place.field("right"), sink)?;
        ::core::result::Result::Ok(())
    }
    fn take(
        place: &::edgepack_format::named::Place<'_>,
        lookup: &'__data dyn ::edgepack_format::named::Lookup,
        errors: &mut ::edgepack_format::named::NamedDataErrors,
    ) -> ::core::option::Option<Self> {
        let _ = (place, lookup, &errors);
        let __field0 = <[T; N] as ::edgepack_format::named::NamedValue<
            '__data,
        >>::take(&place.field("left"), lookup, errors);
        let __field1 = <Vec<
            T,
        > as ::edgepack_format::named::NamedValue<
            '__data,
        >>::take(&place.field("right"), lookup, errors);
        ::core::option::Option::Some(Pair {
            left: __field0?,
            right: __field1?,
        })
    }
    fn is_present(
        place: &::edgepack_format::named::Place<'_>,
        lookup: &'__data dyn ::edgepack_format::named::Lookup,
    ) -> bool {
        let _ = (place, lookup);
        false
            || <[T; N] as ::edgepack_format::named::NamedValue<
                '__data,
            >>::is_present(&place.field("left"), lookup)
            || <Vec<
                T,
            > as ::edgepack_format::named::NamedValue<
                '__data,
            >>::is_present(&place.field("right"), lookup)
    }
}
#[automatically_derived]
impl<'__data, T: Element, const N: usize> ::edgepack_format::named::NamedItem<'__data>
for Pair<T, N>
where
    T: Pod,
    [T; N]: ::edgepack_format::named::NamedValue<'__data>,
    Vec<T>: ::edgepack_format::named::NamedValue<'__data>,
{}
#[automatically_derived]
impl<'__data, T: Element, const N: usize> ::edgepack_format::named::NamedData<'__data>
for Pair<T, N>
where
    T: Pod,
    [T; N]: ::edgepack_format::named::NamedValue<'__data>,
    Vec<T>: ::edgepack_format::named::NamedValue<'__data>,
{}
