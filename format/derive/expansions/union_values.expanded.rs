#[automatically_derived]
#[allow(dead_code, reason = "a crate may use some of the tags only")]
impl<'a> Value<'a> {
    ///The tag of `Int`.
    pub const INT: u8 = 1u8;
    ///The tag of `Text`.
    pub const TEXT: u8 = 4u8;
}
#[automatically_derived]
impl<'a> ::edgepack_format::row::Union<'a> for Value<'a> {
    const DESC: &'static ::edgepack_format::row::UnionDesc = &::edgepack_format::row::UnionDesc {
        name: "Value",
        variants: &[
            (1u8, "Int", <Int as ::edgepack_format::row::Table<'a>>::DESC),
            (4u8, "Text", <Text<'a> as ::edgepack_format::row::Table<'a>>::DESC),
        ],
    };
    #[inline]
    fn decode(
        tag: u8,
        table: ::edgepack_format::wire::Table<'a>,
    ) -> ::edgepack_format::wire::Result<Self> {
        ::core::result::Result::Ok(
            match tag {
                1u8 => {
                    Value::Int(
                        <Int as ::edgepack_format::row::Table<'a>>::decode(table)?,
                    )
                }
                4u8 => {
                    Value::Text(
                        <Text<'a> as ::edgepack_format::row::Table<'a>>::decode(table)?,
                    )
                }
                tag => Value::Unknown(tag),
            },
        )
    }
    #[inline]
    fn check(
        tag: u8,
        table: ::edgepack_format::wire::Table<'a>,
        checker: &mut ::edgepack_format::check::Checker,
        path: &::edgepack_format::check::Path<'_>,
    ) {
        match tag {
            1u8 => checker.table::<Int>(table, path),
            4u8 => checker.table::<Text<'a>>(table, path),
            _ => {}
        }
    }
    fn tag(&self) -> u8 {
        match self {
            Value::Int(_) => 1u8,
            Value::Text(_) => 4u8,
            Value::Unknown(tag) => *tag,
        }
    }
    fn encode<__S: ::edgepack_format::row::Sink>(
        &self,
        sink: &mut __S,
    ) -> ::core::result::Result<__S::Ref, __S::Error> {
        match self {
            Value::Int(row) => ::edgepack_format::row::Table::encode(row, sink),
            Value::Text(row) => ::edgepack_format::row::Table::encode(row, sink),
            Value::Unknown(_) => sink.table(&[]),
        }
    }
}
#[automatically_derived]
impl<'a> ::edgepack_format::row::Optional<'a> for Value<'a> {
    const KIND: ::edgepack_format::row::FieldKind = ::edgepack_format::row::FieldKind::Union(
        <Self as ::edgepack_format::row::Union<'a>>::DESC,
    );
    #[inline]
    fn read(
        table: &::edgepack_format::wire::Table<'a>,
        slot: u16,
    ) -> ::edgepack_format::wire::Result<::core::option::Option<Self>> {
        ::edgepack_format::row::read_union(table, slot)
    }
    #[inline]
    fn check(
        table: &::edgepack_format::wire::Table<'a>,
        slot: u16,
        _: usize,
        checker: &mut ::edgepack_format::check::Checker,
        path: &::edgepack_format::check::Path<'_>,
    ) {
        checker.union::<Self>(table, slot, path);
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
        let written = <Self as ::edgepack_format::row::Union<'a>>::encode(self, sink)?;
        let tag = <Self as ::edgepack_format::row::Union<'a>>::tag(self);
        ::edgepack_format::row::push_union(slot, tag, written, fields);
        ::core::result::Result::Ok(())
    }
}
