#[spec(rename_all = "SCREAMING-KEBAB-CASE", allow_unknown)]
struct Options {
    max_value: u32,
    #[spec(key = "fuse", default = "true")]
    fused: bool,
    #[spec(default = "cpu")]
    device: String,
    #[spec(default)]
    weights: Vec<f32>,
    cache_dir: Option<String>,
    #[spec(skip)]
    calls: u64,
}
