#[automatically_derived]
impl ::edgepack_format::spec::SpecValue for Precision {
    fn expected() -> ::edgepack_format::__alloc::borrow::Cow<'static, str> {
        ::edgepack_format::spec::one_of("Precision", &["full", "fp16"])
    }
    fn to_bytes(&self) -> ::edgepack_format::__alloc::vec::Vec<u8> {
        match self {
            Precision::Full => b"full".to_vec(),
            Precision::HalfPrecision => b"fp16".to_vec(),
        }
    }
    fn from_bytes(bytes: &[u8]) -> ::core::option::Option<Self> {
        match bytes {
            b"full" => ::core::option::Option::Some(Precision::Full),
            b"fp16" => ::core::option::Option::Some(Precision::HalfPrecision),
            _ => ::core::option::Option::None,
        }
    }
}
