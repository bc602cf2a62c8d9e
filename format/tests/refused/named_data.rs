use edgepack_format::named::NamedData;

#[derive(NamedData)]
struct SameKey {
    first: u32,
    #[named(rename = "first")]
    second: u32,
}

#[derive(NamedData)]
struct EmptyKey {
    #[named(rename = "")]
    field: u32,
}

#[derive(NamedData)]
struct RenameAndPrefix {
    #[named(rename = "a", prefix = "b")]
    field: u32,
}

#[derive(NamedData)]
struct SkippedKey {
    #[named(skip, rename = "a")]
    field: u32,
}

#[derive(NamedData)]
struct OddAlignment {
    #[named(align = 24)]
    field: u32,
}

#[derive(NamedData)]
struct TagOfAPath {
    #[named(external = "../weights")]
    field: u32,
}

#[derive(NamedData)]
struct TwoOpenSizes {
    #[named(shape = [_, 2, _])]
    field: Vec<u32>,
}

#[derive(NamedData)]
struct BadField {
    #[named(key = "a")]
    field: u32,
}

#[derive(NamedData)]
#[named(rename_all = "camelCase")]
struct BadStruct;

#[derive(NamedData)]
struct Tuple(u32);

#[derive(NamedData)]
enum NoStruct {}

#[derive(NamedData)]
struct TwoLifetimes<'a, 'b> {
    first: &'a [u8],
    second: &'b [u8],
}

fn main() {}
