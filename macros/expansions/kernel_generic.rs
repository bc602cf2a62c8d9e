#[kernel("my::fill(Tensor? mask, str mode, *, Tensor(a!) out) -> Tensor(a!)", dtypes(f32, half::f16), resize = sizes, name = OTHER)]
#[cfg(feature = "fill")]
fn fill<T: Copy>(mask: Option<Tensor<'_, T>>, mode: &str, out: TensorMut<'_, T>)
where
    T: Default,
{
}
