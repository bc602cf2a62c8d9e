#[automatically_derived]
impl Null {}
#[automatically_derived]
impl<'__file> crate::wire_format::row::Table<'__file> for Null {
    const DESC: &'static crate::wire_format::row::TableDesc = &crate::wire_format::row::TableDesc {
        name: "Null",
        fields: &[],
    };
    #[inline]
    fn decode(
        table: crate::wire_format::wire::Table<'__file>,
    ) -> crate::wire_format::wire::Result<Self> {
        let _ = &table;
        ::core::result::Result::Ok(Null)
    }
    #[inline]
    fn check(
        table: crate::wire_format::wire::Table<'__file>,
        checker: &mut crate::wire_format::check::Checker,
        path: &crate::wire_format::check::Path<'_>,
    ) {
        let _ = (&table, &checker, &path);
    }
    fn encode<__S: crate::wire_format::row::Sink>(
        &self,
        sink: &mut __S,
    ) -> ::core::result::Result<__S::Ref, __S::Error> {
        let mut fields = sink.field_list();
        let table = sink.table(&fields)?;
        sink.take_back(fields);
        ::core::result::Result::Ok(table)
    }
}
#[automatically_derived]
impl<'__file> crate::wire_format::row::Optional<'__file> for Null {
    const KIND: crate::wire_format::row::FieldKind = crate::wire_format::row::FieldKind::Table(
        <Self as crate::wire_format::row::Table<'__file>>::DESC,
    );
    #[inline]
    fn read(
        table: &crate::wire_format::wire::Table<'__file>,
        slot: u16,
    ) -> crate::wire_format::wire::Result<::core::option::Option<Self>> {
        table
            .table(slot)?
            .map(<Self as crate::wire_format::row::Table<'__file>>::decode)
            .transpose()
    }
    #[inline]
    fn check(
        table: &crate::wire_format::wire::Table<'__file>,
        slot: u16,
        _: usize,
        checker: &mut crate::wire_format::check::Checker,
        path: &crate::wire_format::check::Path<'_>,
    ) {
        checker.sub_table::<Self>(table, slot, path);
    }
    fn write<__S: crate::wire_format::row::Sink>(
        &self,
        slot: u16,
        _: usize,
        sink: &mut __S,
        fields: &mut crate::wire_format::__alloc::vec::Vec<
            (u16, crate::wire_format::row::FieldValue<__S::Ref>),
        >,
    ) -> ::core::result::Result<(), __S::Error> {
        let written = <Self as crate::wire_format::row::Table<
            '__file,
        >>::encode(self, sink)?;
        fields.push((slot, crate::wire_format::row::FieldValue::Ref(written)));
        ::core::result::Result::Ok(())
    }
}
