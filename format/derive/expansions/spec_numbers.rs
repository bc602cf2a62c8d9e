#[spec(repr = "u16", crate = "edgepack::format")]
enum Mode {
    Fast = 7,
    Exact,
}
