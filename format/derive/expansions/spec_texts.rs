#[spec(rename_all = "snake_case")]
enum Precision {
    Full,
    #[spec(key = "fp16")]
    HalfPrecision,
}
