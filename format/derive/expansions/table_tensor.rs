#[table(name = "Tensor")]
pub struct TensorRow<'a> {
    #[slot(0, default = 6)]
    pub scalar_type: ScalarType,
    #[slot(2, name = "type", align = 16)]
    pub kind: Option<Scalars<'a, i32>>,
}
