#[automatically_derived]
impl<'a> TensorRow<'a> {
    ///Slot of `scalar_type`.
    pub const SCALAR_TYPE: ::edgepack_format::row::Slot<ScalarType> = ::edgepack_format::row::Slot::new(
            0u16,
        )
        .or(::edgepack_format::row::le_bytes((6) as i64 as u64));
    ///Slot of `type`.
    pub const TYPE: ::edgepack_format::row::Slot<Option<Scalars<'a, i32>>> = ::edgepack_format::row::Slot::new(
            2u16,
        )
        .aligned(16);
}
#[automatically_derived]
impl<'a> ::edgepack_format::row::Table<'a> for TensorRow<'a> {
    const DESC: &'static ::edgepack_format::row::TableDesc = &::edgepack_format::row::TableDesc {
        name: "Tensor",
        fields: &[
            ::edgepack_format::row::FieldDesc {
                name: "scalar_type",
                slot: Self::SCALAR_TYPE.index,
                kind: <ScalarType as ::edgepack_format::row::Field<'a>>::KIND,
                align: Self::SCALAR_TYPE.align,
                default: Self::SCALAR_TYPE.default,
            },
            ::edgepack_format::row::FieldDesc {
                name: "type",
                slot: Self::TYPE.index,
                kind: <Option<
                    Scalars<'a, i32>,
                > as ::edgepack_format::row::Field<'a>>::KIND,
                align: Self::TYPE.align,
                default: Self::TYPE.default,
            },
        ],
    };
    #[inline]
    fn decode(
        table: ::edgepack_format::wire::Table<'a>,
    ) -> ::edgepack_format::wire::Result<Self> {
        let _ = &table;
        ::core::result::Result::Ok(TensorRow {
            scalar_type: table.get(Self::SCALAR_TYPE)?,
            kind: table.get(Self::TYPE)?,
        })
    }
    #[inline]
    fn check(
        table: ::edgepack_format::wire::Table<'a>,
        checker: &mut ::edgepack_format::check::Checker,
        path: &::edgepack_format::check::Path<'_>,
    ) {
        let _ = (&table, &checker, &path);
        <ScalarType as ::edgepack_format::row::Field<
            'a,
        >>::check(&table, Self::SCALAR_TYPE, checker, &path.field("scalar_type"));
        <Option<
            Scalars<'a, i32>,
        > as ::edgepack_format::row::Field<
            'a,
        >>::check(&table, Self::TYPE, checker, &path.field("type"));
    }
    fn encode<__S: ::edgepack_format::row::Sink>(
        &self,
        sink: &mut __S,
    ) -> ::core::result::Result<__S::Ref, __S::Error> {
        let mut fields = sink.field_list();
        ::edgepack_format::row::Field::write(
            &self.scalar_type,
            Self::SCALAR_TYPE,
            sink,
            &mut fields,
        )?;
        ::edgepack_format::row::Field::write(&self.kind, Self::TYPE, sink, &mut fields)?;
        let table = sink.table(&fields)?;
        sink.take_back(fields);
        ::core::result::Result::Ok(table)
    }
}
#[automatically_derived]
impl<'a> ::edgepack_format::row::Optional<'a> for TensorRow<'a> {
    const KIND: ::edgepack_format::row::FieldKind = ::edgepack_format::row::FieldKind::Table(
        <Self as ::edgepack_format::row::Table<'a>>::DESC,
    );
    #[inline]
    fn read(
        table: &::edgepack_format::wire::Table<'a>,
        slot: u16,
    ) -> ::edgepack_format::wire::Result<::core::option::Option<Self>> {
        table
            .table(slot)?
            .map(<Self as ::edgepack_format::row::Table<'a>>::decode)
            .transpose()
    }
    #[inline]
    fn check(
        table: &::edgepack_format::wire::Table<'a>,
        slot: u16,
        _: usize,
        checker: &mut ::edgepack_format::check::Checker,
        path: &::edgepack_format::check::Path<'_>,
    ) {
        checker.sub_table::<Self>(table, slot, path);
    }
    fn write<__S: ::edgepack_format::row::Sink>(
        &self,
        slot: u16,
        _: usize,
        sink: &mut __S,
        fields: &mut ::edgepack_format::__alloc::vec::Vec<
            (u16, ::edgepack_format::row::FieldValue<__S::Ref>),
        >,
    ) -> ::core::result::Result<(), __S::Error> {
        let written = <Self as ::edgepack_format::row::Table<'a>>::encode(self, sink)?;
        fields.push((slot, ::edgepack_format::row::FieldValue::Ref(written)));
        ::core::result::Result::Ok(())
    }
}
