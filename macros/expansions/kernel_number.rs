#[kernel("my::sum(int a, float? b) -> float", crate = "edgepack::executor")]
fn sum(a: i64, b: Option<f64>) -> f64 {
    a as f64 + b.unwrap_or(0.0)
}
