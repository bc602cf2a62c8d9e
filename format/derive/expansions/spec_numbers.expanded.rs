#[automatically_derived]
impl edgepack::format::spec::SpecValue for Mode {
    fn expected() -> edgepack::format::__alloc::borrow::Cow<'static, str> {
        edgepack::format::spec::one_of(
            ::core::concat!("Mode", " as ", ::core::stringify!(u16), ", little-endian"),
            &[
                &edgepack::format::__alloc::string::ToString::to_string(
                    &(Mode::Fast as u16),
                ),
                &edgepack::format::__alloc::string::ToString::to_string(
                    &(Mode::Exact as u16),
                ),
            ],
        )
    }
    fn to_bytes(&self) -> edgepack::format::__alloc::vec::Vec<u8> {
        edgepack::format::spec::SpecValue::to_bytes(
            &match self {
                Mode::Fast => Mode::Fast as u16,
                Mode::Exact => Mode::Exact as u16,
            },
        )
    }
    fn from_bytes(bytes: &[u8]) -> ::core::option::Option<Self> {
        let number = <u16 as edgepack::format::spec::SpecValue>::from_bytes(bytes)?;
        if number == Mode::Fast as u16 {
            return ::core::option::Option::Some(Mode::Fast);
        }
        if number == Mode::Exact as u16 {
            return ::core::option::Option::Some(Mode::Exact);
        }
        ::core::option::Option::None
    }
}
