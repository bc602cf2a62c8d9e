use edgepack_format::spec::CompileSpecs;

#[derive(CompileSpecs)]
struct SameKey {
    first: u32,
    #[spec(key = "first")]
    second: u32,
}

#[derive(CompileSpecs)]
#[spec(rename_all = "Title Case")]
struct NoCase {
    field: u32,
}

#[derive(CompileSpecs)]
struct SkippedKey {
    #[spec(skip, key = "a")]
    field: u32,
}

#[derive(CompileSpecs)]
struct DefaultOfOption {
    #[spec(default = "7")]
    field: Option<u32>,
}

#[derive(CompileSpecs)]
struct BadField {
    #[spec(prefix = "a")]
    field: u32,
}

#[derive(CompileSpecs)]
#[spec(deny_unknown)]
struct BadStruct {
    field: u32,
}

#[derive(CompileSpecs)]
struct Tuple(u32);

#[derive(CompileSpecs)]
struct Borrowed<'a> {
    field: &'a str,
}

#[derive(CompileSpecs)]
enum WithValues {
    Number(u32),
}

#[derive(CompileSpecs)]
#[spec(repr = "usize")]
enum BadRepr {
    One,
}

#[derive(CompileSpecs)]
#[spec(repr = "u8")]
enum NumberWithKey {
    #[spec(key = "one")]
    One,
}

#[derive(CompileSpecs)]
enum Empty {}

fn main() {}
