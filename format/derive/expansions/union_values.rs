enum Value<'a> {
    #[tag(1)]
    Int(Int),
    #[tag(4)]
    Text(Text<'a>),
    #[unknown]
    Unknown(u8),
}
