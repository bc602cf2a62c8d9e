use super::*;
use crate::random::Random;
use crate::threads::Threads;

fn pairs(outer: usize, inner: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |a| (0..inner).map(move |b| (a, b)))
}

/// The definition, one query at a time: operands are `[position, head, element]`.
fn naive(geometry: &Geometry, [query, key, value]: [&[f32]; 3], causal: bool, scale: f32) -> Vec<f64> {
    let Geometry { heads, key_heads, queries, keys, dim, .. } = *geometry;
    let mut out = Vec::new();
    for (position, head) in pairs(queries, heads) {
        let query = &query[(position * heads + head) * dim..][..dim];
        let row = |all: &[f32], at: usize| -> Vec<f64> {
            let start = (at * key_heads + head / (heads / key_heads)) * dim;
            all[start..][..dim].iter().map(|&x| f64::from(x)).collect()
        };
        let seen = if causal { keys - queries + position + 1 } else { keys };
        let score = |at: usize| -> f64 { row(key, at).iter().zip(query).map(|(k, &q)| k * f64::from(q)).sum() };
        let weights: Vec<f64> = (0..seen).map(|at| (score(at) * f64::from(scale)).exp()).collect();
        let sum: f64 = weights.iter().sum();
        out.extend((0..dim).map(|i| {
            let terms = weights.iter().enumerate().map(|(at, weight)| weight * row(value, at)[i]);
            terms.sum::<f64>() / sum
        }));
    }
    out
}

#[test]
fn blocks_agree_with_the_definition() {
    let mut random = Random::new(41);
    // More keys than a block, one query per head and several, heads that share keys.
    let cases = [
        (1, 700, 4, 2, 5),
        (1, 531, 6, 3, 40),
        (1, 19, 2, 2, 64),
        (3, 9, 2, 2, 5),
        (70, 600, 2, 1, 5),
        (1, 1, 1, 1, 5),
    ];
    for (queries, keys, heads, key_heads, dim) in cases {
        let (query_strides, key_strides) =
            (Strides::new(queries, heads, dim, false), Strides::new(keys, key_heads, dim, false));
        let geometry =
            Geometry { batch: 1, heads, key_heads, queries, keys, dim, converted: false, query_strides, key_strides };
        let query = random.floats(queries * heads * dim);
        let (key, value) = (random.floats(keys * key_heads * dim), random.floats(keys * key_heads * dim));
        for causal in [false, true] {
            let visible = if causal { Visible::Causal(keys - queries) } else { Visible::All };
            let operands = [&query, &key, &value].map(|list| Floats(&list[..]));
            let [q, k, v] = operands;
            let attention = Attention { geometry, query: q, key: k, value: v, visible, scale: 0.5 };
            let (mut out, mut scratch) = (vec![0.0f32; query.len()], vec![0.0; geometry.scratch()]);
            attention.run(&mut out, &mut scratch).unwrap();
            for (have, want) in out.iter().zip(naive(&geometry, [&query, &key, &value], causal, 0.5)) {
                assert!((f64::from(*have) - want).abs() < 1e-5, "{geometry:?}: {have} {want}");
            }
        }
    }
}

#[test]
fn one_query_does_not_see_what_a_mask_hides() {
    let mut random = Random::new(47);
    let (all, seen, heads, key_heads, dim) = (800, 530, 4, 2, 24);
    let query = random.floats(heads * dim);
    let (key, value) = (random.floats(all * key_heads * dim), random.floats(all * key_heads * dim));
    let mask: Vec<f32> = (0..all).map(|at| if at < seen { 0.0 } else { f32::NEG_INFINITY }).collect();
    let run = |keys: usize, visible: Visible<'_>| {
        let (query_strides, key_strides) =
            (Strides::new(1, heads, dim, false), Strides::new(keys, key_heads, dim, false));
        let geometry = Geometry {
            batch: 1,
            heads,
            key_heads,
            queries: 1,
            keys,
            dim,
            converted: false,
            query_strides,
            key_strides,
        };
        let [query, key, value] = [&query, &key, &value].map(|list| Floats(&list[..]));
        let (mut out, mut scratch) = (vec![0.0f32; heads * dim], vec![0.0; geometry.scratch()]);
        Attention { geometry, query, key, value, visible, scale: 0.3 }.run(&mut out, &mut scratch).unwrap();
        out
    };
    let want = run(seen, Visible::All);
    assert_eq!(run(all, Visible::Mask(&mask)), want);
    assert_eq!(run(all, Visible::Causal(seen - 1)), want);
}

/// `[batch, a, b, dim]` as `[batch, b, a, dim]`.
fn swapped(list: &[f32], [batch, a, b, dim]: [usize; 4]) -> Vec<f32> {
    let row = |batch: usize, i: usize, j: usize| &list[((batch * a + i) * b + j) * dim..][..dim];
    let rows = (0..batch).flat_map(|batch| pairs(b, a).flat_map(move |(j, i)| row(batch, i, j)));
    rows.copied().collect()
}

#[test]
fn layouts_and_threads_give_the_same_bits() {
    let mut random = Random::new(43);
    // Fewer heads than pieces, more, and a multiple of them; one query and several.
    for (heads, key_heads, queries, keys, dim) in [(3, 3, 70, 80, 8), (20, 5, 33, 64, 16), (16, 2, 1, 900, 32)] {
        let batch = 2;
        let query = random.floats(batch * queries * heads * dim);
        let [key, value] = [0; 2].map(|_| random.floats(batch * keys * key_heads * dim));
        let run = |heads_first: bool, threads: usize, operands: [&[f32]; 3]| {
            let geometry = Geometry {
                batch,
                heads,
                key_heads,
                queries,
                keys,
                dim,
                converted: false,
                query_strides: Strides::new(queries, heads, dim, heads_first),
                key_strides: Strides::new(keys, key_heads, dim, heads_first),
            };
            let [query, key, value] = operands.map(Floats);
            let attention = Attention { geometry, query, key, value, visible: Visible::All, scale: 0.3 };
            let (mut out, mut scratch) = (vec![f32::NAN; operands[0].len()], vec![0.0; geometry.scratch()]);
            assert!(geometry.scratch() <= geometry.greatest_scratch());
            Threads::new(threads).unwrap().run(|| attention.run(&mut out, &mut scratch)).unwrap();
            out
        };
        let want = run(false, 1, [&query, &key, &value]);
        assert!(run(false, 3, [&query, &key, &value]) == want, "{heads} heads of {queries} queries");
        let swap = |list: &[f32], rows: usize, heads: usize| swapped(list, [batch, rows, heads, dim]);
        let [query, key, value] =
            [swap(&query, queries, heads), swap(&key, keys, key_heads), swap(&value, keys, key_heads)];
        for threads in [1, 3] {
            let out = run(true, threads, [&query, &key, &value]);
            assert!(swapped(&out, [batch, heads, queries, dim]) == want, "{heads} heads of {queries} queries, first");
        }
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let strides = Strides::new(2, 2, 3, false);
    let geometry = Geometry {
        batch: 1,
        heads: 2,
        key_heads: 2,
        queries: 2,
        keys: 2,
        dim: 3,
        converted: false,
        query_strides: strides,
        key_strides: strides,
    };
    let all = [0.5f32; 12];
    let run = |geometry: Geometry, key: usize, mask: usize, scratch: usize| {
        let (query, key, value) = (Floats(&all[..]), Floats(&all[..key]), Floats(&all[..]));
        let visible = Visible::Mask(&all[..mask]);
        let attention = Attention { geometry, query, key, value, visible, scale: 1.0 };
        attention.run(&mut [0.0f32; 12], &mut vec![0.0; scratch]).map_err(|error| error.kind)
    };
    let scratch = geometry.scratch();
    assert_eq!(run(geometry, 12, 4, scratch), Ok(()));
    assert_eq!(run(geometry, 11, 4, scratch), Err(ErrorKind::Geometry));
    assert_eq!(run(geometry, 12, 3, scratch), Err(ErrorKind::Geometry));
    assert_eq!(run(geometry, 12, 4, scratch - 1), Err(ErrorKind::Geometry));
    assert_eq!(run(Geometry { heads: 3, ..geometry }, 12, 4, scratch), Err(ErrorKind::Geometry));
}
