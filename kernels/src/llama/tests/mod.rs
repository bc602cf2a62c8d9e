//! Every operator of the family against its definition, one element at a time and in double precision.

mod experts;

use edgepack_executor::call::{Arg, OwnedTensor, call};
use edgepack_executor::kernel::Kernel;
use edgepack_format::scalar::ScalarType;
use half::{bf16, f16};

use super::*;
use edgepack_compute::number::{Cast, Number};
use edgepack_compute::random::Random;

fn floats(kernel: &Kernel, args: &[Arg], out: usize) -> Vec<f32> {
    call(kernel, args).unwrap()[out].as_slice().unwrap()
}

fn refusal(kernel: &Kernel, args: &[Arg]) -> String {
    call(kernel, args).unwrap_err().message.into_owned()
}

/// Sizes of a call of attention: batch, queries, places, heads, heads of keys, elements.
#[derive(Clone, Copy, Debug)]
struct Sizes([usize; 6]);

/// Attention by definition, for positions before heads.
fn naive(
    Sizes([batch, queries, places, heads, shared, dim]): Sizes,
    [query, key, value]: [&[f64]; 3],
    scale: f64,
    sees: impl Fn(usize, usize) -> f64,
    keys: usize,
) -> Vec<f64> {
    let mut out = Vec::new();
    for row in 0..batch * queries * heads {
        let (b, q, h) = (row / (queries * heads), row / heads % queries, row % heads / (heads / shared));
        let at = |key: usize| ((b * places + key) * shared + h) * dim;
        let scores: Vec<f64> = (0..keys)
            .map(|k| (0..dim).map(|d| query[row * dim + d] * key[at(k) + d]).sum::<f64>() * scale + sees(q, k))
            .collect();
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let sum: f64 = weights.iter().sum();
        out.extend((0..dim).map(|d| (0..keys).map(|k| weights[k] * value[at(k) + d]).sum::<f64>() / sum));
    }
    out
}

fn close(have: &[f32], want: &[f64], by: f64, what: &str) {
    assert_eq!(have.len(), want.len(), "{what}");
    for (at, (have, want)) in have.iter().zip(want).enumerate() {
        let same = (f64::from(*have) - want).abs() <= by * (1.0 + want.abs()) || have.is_nan() && want.is_nan();
        assert!(same, "{what}: element {at} is {have}, not {want}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| x.into()).collect()
}

/// Random sizes, some of more keys and queries than a block holds.
fn some_sizes(random: &mut Random, round: usize) -> (Sizes, usize) {
    let (shared, repeats) = (random.below(3) + 1, random.below(3) + 1);
    let queries = [1, random.below(6) + 1, random.below(150) + 1][round % 3];
    let start = [0, random.below(9), random.below(1100)][round / 3 % 3];
    let places = start + queries + random.below(5);
    (Sizes([random.below(2) + 1, queries, places, shared * repeats, shared, random.below(20) + 1]), start)
}

/// One operator over random sizes with one element type.
fn attention<T: Number + PartialEq>(with_cache: bool, by: f64)
where
    f32: Cast<T>,
{
    let mut random = Random::new(71);
    for round in 0..24 {
        let (sizes, start) = some_sizes(&mut random, round);
        let Sizes([batch, queries, places, heads, shared, dim]) = sizes;
        let mut tensor = |count: usize| -> Vec<T> { random.floats(count).into_iter().map(Cast::cast).collect() };
        let query = tensor(batch * queries * heads * dim);
        let (mut key, mut value) = (tensor(batch * places * shared * dim), tensor(batch * places * shared * dim));
        let (new_key, new_value) = (tensor(batch * queries * shared * dim), tensor(batch * queries * shared * dim));
        let kind = round % 4;
        let mask: Vec<f32> = random.floats(queries * places).iter().map(|x| if *x > 0.9 { -9.0 } else { *x }).collect();
        let scale = (round % 2 == 1).then_some(0.3);
        let (q_sizes, k_sizes) = ([batch, queries, heads, dim], [batch, places, shared, dim]);
        let n_sizes = [batch, queries, shared, dim];
        let mut args = vec![Arg::tensor(&q_sizes, &query)];
        if with_cache {
            args.extend([Arg::tensor(&n_sizes, &new_key), Arg::tensor(&n_sizes, &new_value)]);
        }
        args.extend([Arg::tensor(&k_sizes, &key), Arg::tensor(&k_sizes, &value), Arg::int(start as i64)]);
        if with_cache {
            args.push(Arg::int(queries as i64));
        }
        args.push(if kind == 0 { Arg::tensor(&[queries, places], &mask) } else { Arg::None });
        args.extend([Arg::double(0.0), Arg::bool(kind > 1), scale.map_or(Arg::None, Arg::double)]);
        args.push(Arg::out(T::SCALAR_TYPE, &q_sizes));
        let kernel = if with_cache { &sdpa::WITH_CACHE } else { &sdpa::CUSTOM };
        let results = call(kernel, &args).unwrap();
        if with_cache {
            for (cache, new) in [(&mut key, &new_key), (&mut value, &new_value)] {
                let (row, place) = (queries * shared * dim, places * shared * dim);
                for (cache, new) in cache.chunks_exact_mut(place).zip(new.chunks_exact(row)) {
                    cache[start * shared * dim..][..row].copy_from_slice(new);
                }
            }
            assert!(results[0].as_slice::<T>().unwrap() == key && results[1].as_slice::<T>().unwrap() == value);
        }
        let have: Vec<f32> = results.last().unwrap().as_slice::<T>().unwrap().into_iter().map(Cast::cast).collect();
        let of = |values: &[T]| -> Vec<f64> { values.iter().map(|&x| x.cast()).collect() };
        let keys = if kind == 0 { places } else { start + queries };
        let sees = |q: usize, k: usize| match kind {
            0 => f64::from(mask[q * places + k]),
            1 => 0.0,
            _ if k > start + q => f64::NEG_INFINITY,
            _ => 0.0,
        };
        let scale = scale.unwrap_or(1.0 / (dim as f64).sqrt());
        let want = naive(sizes, [&of(&query), &of(&key), &of(&value)], scale, sees, keys);
        close(&have, &want, by, &format!("round {round}, {sizes:?}, start {start}, kind {kind}"));
    }
}

#[test]
fn attention_agrees_with_its_definition() {
    attention::<f32>(false, 2e-5);
    attention::<f16>(false, 2e-3);
    attention::<bf16>(false, 1e-2);
}

#[test]
fn attention_with_a_cache_writes_it_first() {
    attention::<f32>(true, 2e-5);
    attention::<bf16>(true, 1e-2);
}

#[test]
fn attention_over_bytes_agrees_with_its_definition() {
    let mut random = Random::new(72);
    for round in 0..24 {
        let (sizes, start) = some_sizes(&mut random, round);
        let Sizes([batch, queries, places, heads, shared, dim]) = sizes;
        let heads_first = round % 2 == 1;
        // Values, zero points and scales with positions first, as the definition takes them.
        let mut operand = |positions: usize, heads: usize| {
            let rows = batch * positions * heads;
            let values: Vec<i8> = (0..rows * dim).map(|_| random.below(256) as u8 as i8).collect();
            let zeros: Vec<i8> = (0..rows).map(|_| random.below(9) as i8 - 4).collect();
            let scales: Vec<f32> = (0..rows).map(|_| 0.002 * (random.below(5) + 1) as f32).collect();
            let real: Vec<f64> = (0..rows * dim)
                .map(|at| (f64::from(values[at]) - f64::from(zeros[at / dim])) * f64::from(scales[at / dim]))
                .collect();
            (values, zeros, scales, real, positions, heads)
        };
        let operands = [operand(queries, heads), operand(places, shared), operand(places, shared)];
        fn turned<T: Copy>(values: &[T], [batch, positions, heads, width]: [usize; 4], turn: bool) -> Vec<T> {
            let from = |at: usize| match turn {
                true => {
                    let (b, h, p) =
                        (at / (heads * positions * width), at / (positions * width) % heads, at / width % positions);
                    ((b * positions + p) * heads + h) * width + at % width
                }
                false => at,
            };
            (0..batch * positions * heads * width).map(|at| values[from(at)]).collect()
        }
        let shape = |positions: usize, heads: usize, width: usize| match heads_first {
            true => [batch, heads, positions, width],
            false => [batch, positions, heads, width],
        };
        let mask: Vec<f32> = random.floats(queries * places);
        let kind = round % 3;
        let mut args: Vec<Arg> = operands
            .iter()
            .map(|(values, _, _, _, positions, heads)| {
                let values = turned(values, [batch, *positions, *heads, dim], heads_first);
                Arg::tensor(&shape(*positions, *heads, dim), &values)
            })
            .collect();
        args.push(Arg::int(start as i64));
        args.push(if kind == 0 { Arg::tensor(&[queries, places], &mask) } else { Arg::None });
        args.extend([Arg::double(0.0), Arg::bool(kind == 1), Arg::None]);
        for (_, zeros, scales, _, positions, heads) in &operands {
            let sizes = [batch, *positions, *heads, 1];
            let shape = shape(*positions, *heads, 1);
            args.push(Arg::tensor(&shape, &turned(zeros, sizes, heads_first)));
            args.push(Arg::tensor(&shape, &turned(scales, sizes, heads_first)));
        }
        args.extend([Arg::bool(heads_first), Arg::out(ScalarType::FLOAT, &shape(queries, heads, dim))]);
        let have = floats(&sdpa::QUANTIZED, &args, 0);
        let keys = if kind == 0 { places } else { start + queries };
        let sees = |q: usize, k: usize| match kind {
            0 => f64::from(mask[q * places + k]),
            1 if k > start + q => f64::NEG_INFINITY,
            _ => 0.0,
        };
        let [query, key, value] = operands.each_ref().map(|operand| operand.3.as_slice());
        let want = naive(sizes, [query, key, value], 1.0 / (dim as f64).sqrt(), sees, keys);
        let want = turned(&want, [batch, queries, heads, dim], heads_first);
        close(&have, &want, 2e-5, &format!("round {round}, {sizes:?}, start {start}, kind {kind}"));
    }
}

#[test]
fn a_query_that_sees_nothing_is_no_number() {
    let one = || Arg::tensor(&[1, 2, 1, 1], &[1.0f32, 2.0]);
    let inf = f32::NEG_INFINITY;
    let mask = Arg::tensor(&[2, 2], &[inf, inf, inf, 0.0]);
    let out = Arg::out(ScalarType::FLOAT, &[1, 2, 1, 1]);
    let args = [one(), one(), one(), Arg::int(0), mask, Arg::double(0.0), Arg::bool(false), Arg::None, out];
    let have = floats(&sdpa::CUSTOM, &args, 0);
    assert!(have[0].is_nan() && have[1] == 2.0, "{have:?}");
}

fn attention_args() -> Vec<Arg> {
    let tensor = |sizes: [usize; 4]| Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, &sizes));
    let mut args = vec![tensor([1, 2, 4, 3]), tensor([1, 5, 2, 3]), tensor([1, 5, 2, 3]), Arg::int(1), Arg::None];
    args.extend([Arg::double(0.0), Arg::bool(true), Arg::None, tensor([1, 2, 4, 3])]);
    args
}

#[test]
fn attention_refuses_what_does_not_fit() {
    let tensor = |sizes: &[usize]| Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, sizes));
    let with = |at: usize, arg: Arg| {
        let mut args = attention_args();
        args[at] = arg;
        refusal(&sdpa::CUSTOM, &args)
    };
    assert_eq!(with(3, Arg::int(4)), "`start_pos` is 4 and there are 2 tokens, `key` has 5 places");
    assert_eq!(with(3, Arg::int(-1)), "`start_pos` is -1 and there are 2 tokens, `key` has 5 places");
    assert_eq!(
        with(3, Arg::int(i64::MAX)),
        format!("`start_pos` is {} and there are 2 tokens, `key` has 5 places", i64::MAX)
    );
    assert_eq!(
        with(4, tensor(&[2, 5])),
        "`attn_mask` is given and `is_causal` is true: the operator takes one of them"
    );
    assert_eq!(with(2, tensor(&[1, 4, 2, 3])), "`value` is 1x4x2x3, the other asks for 1x5x2x3");
    assert_eq!(with(0, tensor(&[2, 4, 3])), "`query` is 2x4x3, the operator wants 4 dimensions");
    assert_eq!(with(1, Arg::out(ScalarType::HALF, &[1, 5, 2, 3])), "`query` is f32, `key` is f16: the types differ");
    assert_eq!(
        with(0, tensor(&[1, 2, 3, 3])),
        "`query` is 1x2x3x3, `key` is 1x5x2x3: batch and last dimension must be the same, and heads of keys divide those of queries"
    );
    let mut args = attention_args();
    (args[4], args[6]) = (tensor(&[2, 4]), Arg::bool(false));
    assert_eq!(refusal(&sdpa::CUSTOM, &args), "`attn_mask` is 2x4, the number of queries and keys asks for 2x5");
}

#[test]
fn caches_are_written_where_they_are_told() {
    let value = || Arg::tensor(&[2, 2, 1, 2], &[1i16, 2, 3, 4, 5, 6, 7, 8]);
    let cache = || Arg::tensor(&[2, 3, 1, 2], &[0i16; 12]);
    let out = || Arg::tensor(&[1], &[9i16]);
    let results = call(&cache::UPDATE, &[value(), cache(), Arg::int(1), out()]).unwrap();
    assert_eq!(results[0].as_slice::<i16>().unwrap(), [0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 7, 8]);
    assert_eq!(results[1].as_slice::<i16>().unwrap(), [0]);
    let indices = |indices: [i64; 4]| [value(), cache(), Arg::int(-7), Arg::tensor(&[2, 2], &indices), out()];
    let results = call(&cache::UPDATE_WITH_INDICES, &indices([2, 0, 1, 1])).unwrap();
    assert_eq!(results[0].as_slice::<i16>().unwrap(), [3, 4, 0, 0, 1, 2, 0, 0, 7, 8, 0, 0]);
    assert_eq!(refusal(&cache::UPDATE_WITH_INDICES, &indices([0, 1, 2, 3])), "`indices` holds 3, `cache` has 3 places");
    assert_eq!(
        refusal(&cache::UPDATE_WITH_INDICES, &indices([0, -1, 2, 0])),
        "`indices` holds -1, `cache` has 3 places"
    );
    let refused = |start| refusal(&cache::UPDATE, &[value(), cache(), Arg::int(start), out()]);
    assert_eq!(refused(2), "`start_pos` is 2 and there are 2 tokens, `cache` has 3 places");
    assert_eq!(refused(i64::MIN), format!("`start_pos` is {} and there are 2 tokens, `cache` has 3 places", i64::MIN));
    let wide = Arg::tensor(&[2, 3, 2, 2], &[0i16; 24]);
    assert_eq!(
        refusal(&cache::UPDATE, &[value(), wide, Arg::int(0), out()]),
        "`value` is 2x2x1x2, `cache` is 2x3x2x2: only their second dimension may differ"
    );
}

#[test]
fn a_refused_call_leaves_the_cache_alone() {
    let tensor = |sizes: &[usize]| Arg::Tensor(OwnedTensor::zeros(ScalarType::FLOAT, sizes));
    let new = || Arg::tensor(&[1, 2, 1, 1], &[1.0f32, 2.0]);
    let args = |seq_len| {
        let mut args = vec![new(), new(), new(), tensor(&[1, 4, 1, 1]), tensor(&[1, 4, 1, 1]), Arg::int(1)];
        args.extend([
            Arg::int(seq_len),
            Arg::None,
            Arg::double(0.0),
            Arg::bool(true),
            Arg::None,
            tensor(&[1, 2, 1, 1]),
        ]);
        args
    };
    assert_eq!(refusal(&sdpa::WITH_CACHE, &args(3)), "`seq_len` is 3, `key` has 2 tokens");
    assert_eq!(floats(&sdpa::WITH_CACHE, &args(2), 0), [0.0, 1.0, 2.0, 0.0]);
}

#[test]
fn hadamard_transforms_are_products_with_a_hadamard_matrix() {
    let mut random = Random::new(73);
    for length in [1, 2, 8, 64, 28, 56, 112] {
        let blocks = if length % 28 == 0 { 28 } else { 1 };
        let identity: Vec<f32> = (0..length * length).map(|at| f32::from(u8::from(at % (length + 1) == 0))).collect();
        let square = [length, length];
        let args = [Arg::tensor(&square, &identity), Arg::out(ScalarType::FLOAT, &square)];
        let matrix = floats(&hadamard::TRANSFORM, &args, 0);
        for (a, b) in (0..length).flat_map(|a| (0..length).map(move |b| (a, b))) {
            let dot: f32 = (0..length).map(|k| matrix[a * length + k] * matrix[b * length + k]).sum();
            let want = if a == b { blocks as f32 } else { 0.0 };
            assert!((dot - want).abs() < 1e-4, "{length}: rows {a} and {b} give {dot}");
        }
        let row = random.floats(length);
        let args = [Arg::tensor(&[length], &row), Arg::out(ScalarType::FLOAT, &[length])];
        let want: Vec<f64> = (0..length)
            .map(|at| (0..length).map(|k| f64::from(row[k]) * f64::from(matrix[k * length + at])).sum())
            .collect();
        close(&floats(&hadamard::TRANSFORM, &args, 0), &want, 1e-5, "a row");
    }
    let args = [Arg::tensor(&[1, 12], &[0.0f32; 12]), Arg::out(ScalarType::FLOAT, &[1, 12])];
    assert_eq!(
        refusal(&hadamard::TRANSFORM, &args),
        "rows of `mat` have 12 elements, the operator wants a power of two or 28 times one"
    );
}

#[test]
fn the_gated_delta_rule_agrees_with_its_definition() {
    let mut random = Random::new(74);
    for round in 0..20 {
        let (states, repeats) = (random.below(3) + 1, random.below(3) + 1);
        let (batch, heads, tokens) = (random.below(2) + 1, states * repeats, [1, 5, 40][round % 3]);
        let (keys, values) = (random.below(6) + 1, random.below(6) + 1);
        let per_row = round % 2 == 0;
        let decays = if per_row { keys } else { 1 };
        let (query, key) =
            (random.floats(batch * heads * tokens * keys), random.floats(batch * states * tokens * keys));
        let value = random.floats(batch * states * tokens * values);
        let mut positive = |count| -> Vec<f32> { random.floats(count).iter().map(|x| x.abs()).collect() };
        let (decay, beta) = (positive(batch * states * tokens * decays), positive(batch * states * tokens));
        let mut state = wide(&random.floats(batch * states * keys * values));
        let start: Vec<f32> = state.iter().map(|&x| x as f32).collect();
        let mut want = vec![0.0; batch * heads * tokens * values];
        for (head, token) in (0..batch * states).flat_map(|head| (0..tokens).map(move |token| (head, token))) {
            let at = head * tokens + token;
            let state = &mut state[head * keys * values..][..keys * values];
            for (place, x) in state.iter_mut().enumerate() {
                *x *= f64::from(decay[at * decays + if per_row { place / values } else { 0 }]);
            }
            for v in 0..values {
                let key = |k: usize| f64::from(key[at * keys + k]);
                let found: f64 = (0..keys).map(|k| state[k * values + v] * key(k)).sum();
                let delta = (f64::from(value[at * values + v]) - found) * f64::from(beta[at]);
                (0..keys).for_each(|k| state[k * values + v] += key(k) * delta);
            }
            for (repeat, v) in (0..repeats).flat_map(|repeat| (0..values).map(move |v| (repeat, v))) {
                let row = (head * repeats + repeat) * tokens + token;
                want[row * values + v] =
                    (0..keys).map(|k| f64::from(query[row * keys + k]) * state[k * values + v]).sum();
            }
        }
        let decay_sizes = if per_row { vec![batch, states, tokens, keys] } else { vec![batch, states, tokens] };
        let args = [
            Arg::tensor(&[batch, heads, tokens, keys], &query),
            Arg::tensor(&[batch, states, tokens, keys], &key),
            Arg::tensor(&[batch, states, tokens, values], &value),
            Arg::tensor(&decay_sizes, &decay),
            Arg::tensor(&[batch, states, tokens], &beta),
            Arg::tensor(&[batch, states, keys, values], &start),
            Arg::out(ScalarType::FLOAT, &[batch, heads, tokens, values]),
            Arg::out(ScalarType::FLOAT, &[batch, states, keys, values]),
        ];
        let kernel = if round % 4 == 0 { &delta::CHANNELWISE } else { &delta::GATED };
        close(&floats(kernel, &args, 0), &want, 1e-4, &format!("round {round}, results"));
        close(&floats(kernel, &args, 1), &state, 1e-4, &format!("round {round}, states"));
    }
}

#[test]
fn tiles_follow_each_other_row_by_row() {
    let image: Vec<i32> = (0..2 * 2 * 4).collect();
    let args = |side| [Arg::tensor(&[2, 2, 4], &image), Arg::int(side), Arg::out(ScalarType::INT, &[2, 2, 2, 2])];
    let tiles = call(&copies::TILE_CROP, &args(2)).unwrap()[0].as_slice::<i32>().unwrap();
    assert_eq!(tiles, [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]);
    assert_eq!(refusal(&copies::TILE_CROP, &args(3)), "`tile_size` is 3, `input` is 2x2x4: tiles must fill it");
    let copy = [Arg::tensor(&[3], &[1.5f64, 2.0, -0.0]), Arg::out(ScalarType::DOUBLE, &[3])];
    assert_eq!(call(&copies::FALLBACK, &copy).unwrap()[0].as_slice::<f64>().unwrap(), [1.5, 2.0, -0.0]);
}
