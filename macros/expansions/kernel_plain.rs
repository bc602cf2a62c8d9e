#[kernel("my::scale.out(Tensor self, float by, *, Tensor(a!) out) -> Tensor(a!)")]
pub(crate) fn scale<'a>(input: &Tensor<'a, f32>, by: f64, out: &mut TensorMut<'_, f32>) -> Result<(), KernelError> {
    Ok(())
}
