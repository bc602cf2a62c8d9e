//! Mixtures of experts.

use super::*;
use edgepack_compute::packed::{Shape, pack};

struct Experts {
    numbers: [usize; 6],
    x: Vec<f32>,
    gate: Vec<f32>,
    bias: Vec<f32>,
    /// Unpacked weights of every expert, first those of both upper layers, then of the lower.
    weights: [Vec<f64>; 2],
    packed: [Vec<u8>; 2],
}

impl Experts {
    fn new(random: &mut Random, [tokens, activated, experts, hidden, dim, bits]: [usize; 6]) -> Self {
        let mut layer = |rows: usize, columns: usize| {
            let (mut real, mut packed) = (Vec::new(), Vec::new());
            for _ in 0..experts {
                let half = 1i64 << (bits - 1);
                let weights: Vec<i8> =
                    (0..rows * columns).map(|_| (random.below(2 * half as usize) as i64 - half) as i8).collect();
                let scales: Vec<f32> = random.floats(rows * columns / 16).iter().map(|x| x / half as f32).collect();
                real.extend((0..rows * columns).map(|at| f64::from(weights[at]) * f64::from(scales[at / 16])));
                packed.extend(pack(Shape { rows, columns, group: 16, bits }, &weights, &scales).unwrap());
            }
            (real, packed)
        };
        let (up, packed_up) = layer(2 * hidden, dim);
        let (down, packed_down) = layer(dim, hidden);
        Experts {
            numbers: [tokens, activated, experts, hidden, dim, bits],
            x: random.floats(tokens * dim),
            gate: random.floats(experts * dim),
            bias: random.floats(experts),
            weights: [up, down],
            packed: [packed_up, packed_down],
        }
    }

    fn args(&self, score: &str, biased: bool) -> Vec<Arg> {
        let [tokens, activated, experts, hidden, dim, bits] = self.numbers;
        let packed =
            |bytes: &Vec<u8>| Arg::Tensor(OwnedTensor::new(&[experts, bytes.len() / experts], bytes).constant());
        let mut args = vec![Arg::tensor(&[tokens, dim], &self.x), Arg::tensor(&[experts, dim], &self.gate)];
        args.push(if biased { Arg::tensor(&[experts], &self.bias) } else { Arg::out(ScalarType::FLOAT, &[0]) });
        args.extend([packed(&self.packed[0]), packed(&self.packed[1])]);
        args.extend([activated, experts, hidden, dim, 16, bits].map(|number| Arg::int(number as i64)));
        args.extend([Arg::Text(score.to_owned()), Arg::double(2.5), Arg::out(ScalarType::FLOAT, &[tokens, dim])]);
        args
    }

    fn naive(&self, score: &str, biased: bool) -> Vec<f64> {
        let [tokens, activated, experts, hidden, dim, _] = self.numbers;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let mut out = Vec::new();
        for x in wide(&self.x).chunks(dim).take(tokens) {
            let dot = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
            let mut scores: Vec<f64> = wide(&self.gate).chunks(dim).map(|row| dot(row, x)).collect();
            if score == "sigmoid" {
                scores.iter_mut().for_each(|x| *x = sigmoid(*x));
            }
            let rank = |expert: usize| scores[expert] + if biased { f64::from(self.bias[expert]) } else { 0.0 };
            let mut order: Vec<usize> = (0..experts).collect();
            order.sort_by(|&a, &b| rank(b).total_cmp(&rank(a)));
            let mut weights: Vec<f64> = order[..activated].iter().map(|&expert| scores[expert]).collect();
            let mut factor = 2.5;
            if score == "softmax" {
                weights.iter_mut().for_each(|x| *x = x.exp());
                factor = 1.0;
            }
            let sum: f64 = weights.iter().sum();
            let mut result = vec![0.0; dim];
            for (&expert, weight) in order.iter().zip(&weights) {
                let up = &self.weights[0][expert * 2 * hidden * dim..][..2 * hidden * dim];
                let down = &self.weights[1][expert * hidden * dim..][..hidden * dim];
                let both: Vec<f64> = up.chunks(dim).map(|row| dot(row, x)).collect();
                let middle: Vec<f64> = (0..hidden).map(|i| both[i] * sigmoid(both[i]) * both[hidden + i]).collect();
                let answer = down.chunks(hidden).map(|row| dot(row, &middle));
                result.iter_mut().zip(answer).for_each(|(out, x)| *out += weight * factor / sum * x);
            }
            out.extend(result);
        }
        out
    }
}

#[test]
fn experts_agree_with_their_definition() {
    let mut random = Random::new(76);
    for (round, bits) in [4, 8, 4, 8, 4, 4].into_iter().enumerate() {
        let tokens = [1, 6, 90][round % 3];
        let experts = Experts::new(&mut random, [tokens, round % 2 + 1, 5, 48, 32, bits]);
        for (score, biased) in [("sigmoid", true), ("sigmoid", false), ("softmax", false)] {
            let have = floats(&moe::FFN, &experts.args(score, biased), 0);
            close(&have, &experts.naive(score, biased), 1e-4, &format!("round {round}, {score}, bias {biased}"));
        }
    }
}

#[test]
fn experts_refuse_other_packings() {
    let experts = Experts::new(&mut Random::new(77), [1, 1, 2, 16, 16, 4]);
    let with = |at: usize, arg: Arg| {
        let mut args = experts.args("sigmoid", false);
        args[at] = arg;
        refusal(&moe::FFN, &args)
    };
    let mut kleidi = experts.packed[0].clone();
    kleidi[4] = 3;
    let width = kleidi.len() / 2;
    let refused = with(3, Arg::Tensor(OwnedTensor::new(&[2, width], &kleidi).constant()));
    assert!(refused.starts_with("`packed_w13` is packed as [3, 4, 0, 0, 8, 16, 2]"), "{refused}");
    assert_eq!(
        with(3, Arg::tensor(&[2, 9], &[0u8; 18])),
        "`packed_w13` has 9 bytes per expert, 32x16 weights of 4 bits need 576"
    );
    assert_eq!(with(5, Arg::int(3)), "`num_activated_experts` is 3, `num_experts` is 2");
    assert_eq!(
        with(7, Arg::int(i64::MAX)),
        format!("`group_size` is 16, `hidden_dim` is {}: it must divide it and be a multiple of 16", i64::MAX)
    );
    assert_eq!(with(10, Arg::int(5)), "`weight_nbit` is 5, the operator reads 4 and 8");
    assert_eq!(with(11, Arg::Text("relu".into())), "`score_func` is `relu`, not `sigmoid` or `softmax`");
}
