#[table(crate = "crate::wire_format")]
struct Null;
