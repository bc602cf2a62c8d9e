use edgepack_format::row::{Scalars, Table, Union};

#[derive(Table)]
struct NoSlot {
    field: u32,
}

#[derive(Table)]
struct TwoSlots {
    #[slot(0)]
    #[slot(1)]
    field: u32,
}

#[derive(Table)]
struct Descending {
    #[slot(1)]
    first: u32,
    #[slot(1)]
    second: u32,
}

#[derive(Table)]
struct BadOption {
    #[slot(0, alignment = 4)]
    field: u32,
}

#[derive(Table)]
struct BadSlot {
    #[slot("first")]
    field: u32,
}

#[derive(Table)]
struct Tuple(u32);

#[derive(Table)]
enum NoStruct {}

#[derive(Table)]
struct Generic<T> {
    #[slot(0)]
    field: T,
}

#[derive(Table)]
struct TwoFiles<'a, 'b> {
    #[slot(0)]
    first: Option<Scalars<'a, u32>>,
    #[slot(1)]
    second: Option<Scalars<'b, u32>>,
}

#[derive(Table)]
#[table(rename = "Other")]
struct BadAttribute;

#[derive(Union)]
struct NoEnum;

#[derive(Union)]
enum NoTag {
    Known(u8),
    #[unknown]
    Unknown(u8),
}

#[derive(Union)]
enum TagOfNone {
    #[tag(0)]
    Known(u8),
}

#[derive(Union)]
enum NoUnknown {
    #[tag(1)]
    Known(u8),
}

#[derive(Union)]
enum TwoValues {
    #[tag(1)]
    Known(u8, u8),
}

#[derive(Table)]
struct NoField {
    #[slot(0)]
    field: std::string::String,
}

fn main() {}
