//! Which operators are functions of their arguments.

/// Operators that answer something else each time.
const RANDOM: &[&str] = &["aten::rand.out", "aten::randn.out", "aten::native_dropout.out"];

/// Whether calling the operator at load gives what calling it at each run would.
pub fn is_pure(name: &str) -> bool {
    let ours = ["aten::", "dim_order_ops::", "quantized_decomposed::"];
    ours.iter().any(|namespace| name.starts_with(namespace)) && !RANDOM.contains(&name)
}
