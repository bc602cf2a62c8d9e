#[named(prefix = "fc.", align = 64, external = "weights")]
struct Linear<'a> {
    #[named(shape = [2, _, WIDTH])]
    weight: TensorView<'a, f32>,
    #[named(rename = "b", align = 16, external = "small")]
    bias: Option<&'a [f32]>,
    #[named(prefix = "")]
    norm: Norm,
    #[named(skip)]
    calls: u64,
    r#type: u8,
}
