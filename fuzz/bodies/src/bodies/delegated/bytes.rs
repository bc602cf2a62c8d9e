//! Numbers of 8 bits between floats, with calls in between that are computed on them.

use edgepack_exir::graph::{Argument, ValueId};
use edgepack_format::scalar::ScalarType;
use edgepack_smith::Decisions as _;

use super::{Growing, Grown, meta, numbers};

impl Growing<'_, '_> {
    /// Rounds the value to 8 bits and takes it back, perhaps with a call in between that is computed on them.
    pub(super) fn bytes(&mut self, x: &Grown) {
        let first = self.rounded(x, 0);
        let this = ("self", Argument::from(first.id));
        match self.u.below(6) {
            0 => self.call("aten::relu", [this], &first),
            1 => {
                let sum = Grown { bound: 2.0 * first.bound, slack: 2.0 * first.slack, ..first.clone() };
                self.call("aten::add.Tensor", [this, ("other", first.id.into())], &sum);
            }
            2 if first.sizes.len() == 4 => self.window(&first),
            3 if first.sizes.len() > 1 => return self.product_of_bytes(&first),
            4 if first.sizes.len() > 1 => {
                self.pad(&first, 0.0);
                let padded = self.values.last().cloned().filter(|last| last.sizes.len() == first.sizes.len());
                return self.product_of_bytes(&padded.unwrap_or(first));
            }
            _ => return,
        }
        if let Some(last) = self.values.last().cloned() {
            self.rounded(&last, 1);
        }
    }

    /// A product with weights of 8 bits whose result is rounded, too.
    fn product_of_bytes(&mut self, x: &Grown) {
        let (last, outputs) = (x.sizes[x.sizes.len() - 1], 1 + self.u.below(8));
        let seed = u64::from(self.u.byte());
        let bytes = numbers(outputs * last, seed, 127.0).iter().map(|x| (*x as i8).cast_unsigned()).collect();
        let weight = self.constant(ScalarType::CHAR, &[outputs, last], bytes);
        let scale = 1.0 / (127.0 * last as f32);
        let scales = self.constant(ScalarType::FLOAT, &[outputs], scale.to_le_bytes().repeat(outputs));
        let zeros = self.constant(ScalarType::LONG, &[outputs], vec![0; 8 * outputs]);
        let args = [
            ("input", weight),
            ("scales", scales),
            ("zero_points", zeros),
            ("axis", Argument::Int(0)),
            ("quant_min", Argument::Int(-127)),
            ("quant_max", Argument::Int(127)),
            ("dtype", Argument::ScalarType(ScalarType::CHAR)),
        ];
        let kind = meta(ScalarType::FLOAT, &[outputs, last]);
        let weight = self.graph.call("quantized_decomposed::dequantize_per_channel", args, kind);
        let bias = self.floats(&[outputs], 0.5);
        let mut like = Grown { bound: x.bound + 0.5, ..x.clone() };
        *like.sizes.last_mut().expect("dimensions") = outputs;
        self.call("aten::linear", [("input", x.id.into()), ("weight", weight.into()), ("bias", bias)], &like);
        if let Some(last) = self.values.last().cloned() {
            self.rounded(&last, 1);
        }
    }

    /// A value rounded to 8 bits and back. `steps` more steps of the scale may be between two ways of computing it.
    fn rounded(&mut self, x: &Grown, steps: u8) -> Grown {
        let scale = x.bound / 100.0;
        let zero_point = self.u.below(21) as i64 - 10;
        let params = |value: ValueId| {
            [
                ("input", Argument::from(value)),
                ("scale", Argument::Float(scale.into())),
                ("zero_point", Argument::Int(zero_point)),
                ("quant_min", Argument::Int(-128)),
                ("quant_max", Argument::Int(127)),
                ("dtype", Argument::ScalarType(ScalarType::CHAR)),
            ]
        };
        let bytes = meta(ScalarType::CHAR, &x.sizes);
        let bytes = self.graph.call("quantized_decomposed::quantize_per_tensor", params(x.id), bytes);
        let kind = meta(ScalarType::FLOAT, &x.sizes);
        let id = self.graph.call("quantized_decomposed::dequantize_per_tensor", params(bytes), kind);
        let slack = x.slack + f32::from(1 + steps) * scale * 1.001;
        let rounded = Grown { id, slack, bound: x.bound * 1.5, ..x.clone() };
        self.values.push(rounded.clone());
        rounded
    }
}
