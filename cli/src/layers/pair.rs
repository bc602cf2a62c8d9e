//! Pairs of results of two runs that should be alike: by place, name or debug handle, else by order and shape.
//!
//! Invariant: pairs are in the order of both runs, and each result is in one pair at most.

use std::collections::HashMap;

use serde::Serialize;

use super::seen::{Place, Seen};

/// Way in which two results were matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The same place in the same program.
    Place,
    /// The same node of exported programs.
    Name,
    /// The same debug handle.
    Handle,
    /// Order and shape, helped by operators and elements.
    Order,
}

/// Side whose four dimensions are those of an image with channels last, while the other has channels in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turned {
    /// Neither.
    None,
    /// The first run.
    Left,
    /// The second run.
    Right,
}

/// Indices of two results that are to be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// In the first run.
    pub left: usize,
    /// In the second run.
    pub right: usize,
    /// Way in which they were found.
    pub by: By,
    /// Order of dimensions.
    pub turned: Turned,
}

/// Relation of two runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Runs of one program.
    OneProgram,
    /// A run of a program and a record of it by another runtime, which numbers nothing but instructions.
    Record,
    /// Runs of two programs.
    TwoPrograms,
}

/// The most results of an instruction that are looked through for the partner of one.
const REACH: usize = 1024;

/// The most cells of the table that matches by order.
const CELLS: usize = 1 << 22;

/// Finds the pairs.
pub fn pairs(left: &[Seen], right: &[Seen], relation: Relation) -> Vec<Pair> {
    match relation {
        Relation::OneProgram => by_place(left, right),
        Relation::Record => by_instruction(left, right),
        Relation::TwoPrograms if alike(left, right) => by_place(left, right),
        Relation::TwoPrograms => {
            let named = anchors(left, right, By::Name, |seen| {
                let name = seen.name.clone()?;
                Some((name, seen.visit, seen.call, seen.output))
            });
            let anchors = if named.is_empty() {
                let key =
                    |seen: &Seen| Some((seen.handle.filter(|handle| *handle > 0)?, seen.visit, seen.call, seen.output));
                // Numbers of two exports may mean nothing to each other.
                let handles = anchors(left, right, By::Handle, key);
                let agree = |pair: &Pair| family(&left[pair.left].operator) == family(&right[pair.right].operator);
                if handles.iter().all(agree) { handles } else { Vec::new() }
            } else {
                named
            };
            by_order(left, right, &anchors)
        }
    }
}

/// Returns whether two runs went through the same operators with the same shapes.
fn alike(left: &[Seen], right: &[Seen]) -> bool {
    let key = |seen: &Seen| (seen.place(), seen.visit, seen.call, seen.output);
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| {
            key(left) == key(right)
                && left.operator == right.operator
                && left.dtype == right.dtype
                && left.sizes == right.sizes
        })
}

/// Ranges of the results of one visit of a place.
fn visits<K: std::hash::Hash + Eq>(seen: &[Seen], key: impl Fn(&Seen) -> K) -> Vec<(K, usize, std::ops::Range<usize>)> {
    let mut counts: HashMap<K, usize> = HashMap::new();
    let (mut found, mut start) = (Vec::new(), 0);
    for end in 1..=seen.len() {
        let now = key(&seen[start]);
        if end < seen.len() && key(&seen[end]) == now && seen[end].visit == seen[start].visit {
            continue;
        }
        let visit = counts.entry(key(&seen[start])).or_default();
        found.push((now, *visit, start..end));
        *visit += 1;
        start = end;
    }
    found
}

/// Results of one program, whichever rewrites it was loaded with. Calls that became one are the last of them.
fn by_place(left: &[Seen], right: &[Seen]) -> Vec<Pair> {
    let index: HashMap<(Place, usize), std::ops::Range<usize>> =
        visits(left, Seen::place).into_iter().map(|(place, visit, range)| ((place, visit), range)).collect();
    let mut found = Vec::new();
    for (place, visit, range) in visits(right, Seen::place) {
        let Some(other) = index.get(&(place, visit)) else { continue };
        let calls = |seen: &[Seen]| seen.last().map_or(0, |last| last.call);
        let (a, b) = (&left[other.clone()], &right[range.clone()]);
        let (last_a, last_b) = (calls(a), calls(b));
        if place.2 == Some(u32::MAX) && last_a != last_b {
            continue;
        }
        let by_call: HashMap<(usize, usize), usize> =
            a.iter().enumerate().map(|(at, other)| ((last_a - other.call, other.output), at)).collect();
        for (at, one) in b.iter().enumerate() {
            if let Some(&position) = by_call.get(&(last_b - one.call, one.output))
                && a[position].dtype == one.dtype
                && a[position].sizes == one.sizes
            {
                let (left, right) = (other.start + position, range.start + at);
                found.push(Pair { left, right, by: By::Place, turned: Turned::None });
            }
        }
    }
    increasing(found)
}

/// Results of one program, of which one side knows instructions only: those of an instruction from the last on.
fn by_instruction(left: &[Seen], right: &[Seen]) -> Vec<Pair> {
    let key = |seen: &Seen| (seen.chain, seen.instruction);
    let index: HashMap<_, _> =
        visits_of_instructions(left).into_iter().map(|(place, visit, range)| ((place, visit), range)).collect();
    let mut found = Vec::new();
    for (place, visit, range) in visits_of_instructions(right) {
        let Some(other): Option<&std::ops::Range<usize>> = index.get(&(place, visit)) else { continue };
        let mut free = other.clone();
        for right_at in range.rev() {
            let one = &right[right_at];
            let nodes_fit = |other: &Seen| other.node == one.node || other.node.is_none() || one.node.is_none();
            let fitting = free.clone().rev().take(REACH).find_map(|at| {
                let turned = fit(&left[at], one).filter(|_| nodes_fit(&left[at]))?;
                Some((at, turned))
            });
            if let Some((at, turned)) = fitting {
                debug_assert_eq!(key(&left[at]), key(one));
                found.push(Pair { left: at, right: right_at, by: By::Place, turned });
                free.end = at;
            }
        }
    }
    found.sort_by_key(|pair| pair.right);
    increasing(found)
}

/// Visits of instructions: results next to each other, as far as no node comes again.
fn visits_of_instructions(seen: &[Seen]) -> Vec<((usize, usize), usize, std::ops::Range<usize>)> {
    visits(seen, |seen| (seen.chain, seen.instruction))
}

/// Pairs of equal keys whose types fit; nothing if any that has an equal key does not.
fn anchors<K: std::hash::Hash + Eq>(
    left: &[Seen],
    right: &[Seen],
    by: By,
    key: impl Fn(&Seen) -> Option<K>,
) -> Vec<Pair> {
    let index: HashMap<K, usize> = left.iter().enumerate().filter_map(|(at, seen)| Some((key(seen)?, at))).collect();
    let mut found = Vec::new();
    for (right_at, seen) in right.iter().enumerate() {
        let Some(&left_at) = key(seen).and_then(|key| index.get(&key)) else { continue };
        match fit(&left[left_at], seen) {
            Some(turned) => found.push(Pair { left: left_at, right: right_at, by, turned }),
            None if by == By::Handle => return Vec::new(),
            None => {}
        }
    }
    increasing(found)
}

/// The pairs that keep the order of both sides, as far as each comes behind those before it.
fn increasing(pairs: Vec<Pair>) -> Vec<Pair> {
    let mut next = 0;
    let in_order = |pair: &Pair| {
        let keeps = pair.left >= next;
        next = if keeps { pair.left + 1 } else { next };
        keeps
    };
    pairs.into_iter().filter(in_order).collect()
}

/// Dimensions without those of size one.
fn squeezed(sizes: &[usize]) -> impl Iterator<Item = usize> + '_ {
    sizes.iter().copied().filter(|size| *size != 1)
}

/// The order of dimensions in which two results can be compared; `None` if they cannot.
fn fit(left: &Seen, right: &Seen) -> Option<Turned> {
    let turns = |a: &Seen, b: &Seen| match a.sizes.as_slice() {
        &[n, h, w, c] => squeezed(&[n, c, h, w]).eq(squeezed(&b.sizes)),
        _ => false,
    };
    let kinds = left.dtype == right.dtype && left.affine.is_some() == right.affine.is_some()
        || left.is_real() && right.is_real();
    if !kinds {
        return None;
    }
    // Payloads of delegates may have physical dimensions, programs have logical ones.
    let mut ways = Vec::new();
    if squeezed(&left.sizes).eq(squeezed(&right.sizes)) {
        ways.push(Turned::None);
    }
    if left.node.is_some() && turns(left, right) {
        ways.push(Turned::Left);
    }
    if right.node.is_some() && turns(right, left) {
        ways.push(Turned::Right);
    }
    let best = |a: &Turned, b: &Turned| similarity(left, right, *a).total_cmp(&similarity(left, right, *b));
    // Of equals the first counts.
    ways.into_iter().rev().max_by(best)
}

/// Likeness of two results by their samples: 1 if they are equal, 0 from a noise of 2 % of the signal on.
fn similarity(left: &Seen, right: &Seen, turned: Turned) -> f64 {
    let (mut a, mut b, mut noise) = (0f64, 0f64, 0f64);
    for (x, y) in left.reals(turned == Turned::Left).zip(right.reals(turned == Turned::Right)) {
        if x.is_finite() && y.is_finite() {
            (a, b, noise) = (a + x * x, b + y * y, noise + (x - y) * (x - y));
        }
    }
    if noise == 0.0 { 1.0 } else { (1.0 - 50.0 * noise / a.max(b)).max(0.0) }
}

/// The kind of work of an operator, whatever namespace and form it has.
fn family(operator: &str) -> &str {
    let name = operator.rsplit("::").next().unwrap_or(operator);
    let name = name.split('.').next().unwrap_or(name);
    match name {
        "addmm" | "mm" | "linear" => "linear",
        "bmm" | "baddbmm" => "bmm",
        "relu" | "hardtanh" | "clamp" => "clamp",
        "_softmax" | "softmax" => "softmax",
        "sum" => "add",
        "multiple" => "mul",
        "quotient" => "div",
        "means" => "mean",
        "depthwise" => "convolution",
        name if name.starts_with("product") => "linear",
        name if name.starts_with("batch_product") => "bmm",
        name if name.contains("convolution") => "convolution",
        name if name.contains("dequantize") => "dequantize",
        name if name.contains("quantize") => "quantize",
        name => name.strip_suffix("_copy").unwrap_or(name),
    }
}

/// Matches what is between anchors by order.
fn by_order(left: &[Seen], right: &[Seen], anchors: &[Pair]) -> Vec<Pair> {
    let mut found = Vec::new();
    let (mut from_left, mut from_right) = (0, 0);
    let end = Pair { left: left.len(), right: right.len(), by: By::Order, turned: Turned::None };
    for anchor in anchors.iter().chain([&end]) {
        align(&left[from_left..anchor.left], &right[from_right..anchor.right], [from_left, from_right], &mut found);
        if anchor.left < left.len() && anchor.right < right.len() {
            found.push(*anchor);
        }
        (from_left, from_right) = (anchor.left + 1, anchor.right + 1);
    }
    found
}

/// Step of an alignment.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    SkipLeft,
    SkipRight,
    Both(Turned),
}

/// Finds the pairs with the greatest score that keep the order of both sides, near the diagonal of long runs.
fn align(left: &[Seen], right: &[Seen], [from_left, from_right]: [usize; 2], found: &mut Vec<Pair>) {
    let (n, m) = (left.len(), right.len());
    if n == 0 || m == 0 {
        return;
    }
    // Columns of a row: all, or those around where it would be if both went at the same pace.
    let width = (CELLS / (n + 1)).max(64).min(m + 1);
    let start = |row: usize| (row * m / n).saturating_sub(width / 2).min((m + 1).saturating_sub(width));
    let mut steps = vec![Step::SkipLeft; (n + 1) * width];
    let mut above = vec![0f64; width];
    steps[1..width].fill(Step::SkipRight);
    for row in 1..=n {
        let (first, before) = (start(row), start(row - 1));
        let up = |column: usize| {
            let at = column.checked_sub(before).and_then(|at| above.get(at).copied());
            at.unwrap_or(f64::NEG_INFINITY)
        };
        let mut now = vec![f64::NEG_INFINITY; width];
        for at in 0..width {
            let column = first + at;
            let mut best = (up(column), Step::SkipLeft);
            if at > 0 && now[at - 1] > best.0 {
                best = (now[at - 1], Step::SkipRight);
            }
            if column > 0
                && let Some((score, turned)) = score(&left[row - 1], &right[column - 1])
                && up(column - 1) + score > best.0
            {
                best = (up(column - 1) + score, Step::Both(turned));
            }
            (now[at], steps[row * width + at]) = best;
        }
        above = now;
    }
    let (mut row, mut column, mut back) = (n, m, Vec::new());
    while row > 0 && column > 0 {
        let step = column.checked_sub(start(row)).filter(|at| *at < width).map(|at| steps[row * width + at]);
        match step {
            Some(Step::Both(turned)) => {
                (row, column) = (row - 1, column - 1);
                back.push(Pair { left: from_left + row, right: from_right + column, by: By::Order, turned });
            }
            Some(Step::SkipRight) => column -= 1,
            Some(Step::SkipLeft) | None => row -= 1,
        }
    }
    found.extend(back.into_iter().rev());
}

/// Score of a pair: the greater the likelier; `None` if they cannot be one.
fn score(left: &Seen, right: &Seen) -> Option<(f64, Turned)> {
    let turned = fit(left, right)?;
    let (related, alike) = (family(&left.operator) == family(&right.operator), similarity(left, right, turned));
    (related || alike > 0.5).then_some((1.0 + 2.0 * f64::from(u8::from(related)) + 3.0 * alike, turned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use edgepack_format::scalar::ScalarType;

    fn seen(instruction: usize, node: Option<u32>, operator: &str, sizes: &[usize], elements: &[f32]) -> Seen {
        let mut seen = Seen {
            chain: 0,
            instruction,
            delegate: node.map(|_| 0),
            node,
            visit: 0,
            call: 0,
            output: 0,
            operator: operator.to_owned(),
            name: None,
            handle: None,
            source: None,
            dtype: ScalarType::FLOAT,
            sizes: sizes.to_vec(),
            affine: None,
            sample: Vec::new(),
            turned: Vec::new(),
        };
        let mut strides = vec![1; sizes.len()];
        (1..sizes.len()).rev().for_each(|at| strides[at - 1] = strides[at] * sizes[at]);
        seen.look(&strides, &elements.iter().flat_map(|element| element.to_le_bytes()).collect::<Vec<u8>>());
        seen
    }

    fn indices(left: &[Seen], right: &[Seen], relation: Relation) -> Vec<(usize, usize, Turned)> {
        pairs(left, right, relation).iter().map(|pair| (pair.left, pair.right, pair.turned)).collect()
    }

    #[test]
    fn a_fused_layer_is_the_one_it_is_alike() {
        let conv = seen(0, None, "aten::convolution.out", &[4], &[-1.0, 2.0, -3.0, 4.0]);
        let relu = seen(1, None, "aten::relu.out", &[4], &[0.0, 2.0, 0.0, 4.0]);
        let other = seen(2, None, "aten::mean.out", &[1], &[1.5]);
        let fused = seen(0, Some(0), "xnnpack::convolution.int8", &[4], &[0.0, 2.01, 0.0, 3.99]);
        let mean = seen(0, Some(1), "xnnpack::means.out", &[1], &[9.0]);
        let found = indices(&[conv, relu, other], &[fused, mean], Relation::TwoPrograms);
        assert_eq!(found, [(1, 0, Turned::None), (2, 1, Turned::None)]);
    }

    #[test]
    fn images_with_channels_last_are_turned() {
        let first = seen(0, None, "aten::add.out", &[1, 2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let last = seen(0, Some(3), "aten::add.out", &[1, 2, 2, 2], &[1.0, 5.0, 2.0, 6.0, 3.0, 7.0, 4.0, 8.0]);
        let (first, last) = ([first], [last]);
        assert_eq!(indices(&first, &last, Relation::TwoPrograms), [(0, 0, Turned::Right)]);
        assert_eq!(indices(&last, &first, Relation::TwoPrograms), [(0, 0, Turned::Left)]);
    }

    #[test]
    fn calls_that_became_one_are_the_last_of_them() {
        let call = |call: usize, value: f32| Seen { call, ..seen(0, Some(5), "x", &[1], &[value]) };
        let (plain, fused) = ([call(0, 1.0), call(1, 2.0), call(2, 3.0)], [call(0, 2.0), call(1, 3.0)]);
        let want = [(1, 0, Turned::None), (2, 1, Turned::None)];
        assert_eq!(indices(&plain, &fused, Relation::OneProgram), want);
    }

    #[test]
    fn a_record_of_a_delegate_call_is_its_last_results() {
        let inside = [seen(0, Some(0), "a", &[2], &[1.0, 2.0]), seen(0, Some(1), "b", &[3], &[4.0, 5.0, 6.0])];
        let recorded = [seen(0, None, "recorded", &[9], &[0.0; 9]), seen(0, None, "recorded", &[3], &[4.0, 5.0, 6.0])];
        assert_eq!(indices(&inside, &recorded, Relation::Record), [(1, 1, Turned::None)]);
    }

    #[test]
    fn long_runs_are_matched_near_the_diagonal() {
        let run = |from: usize, to: usize| -> Vec<Seen> {
            (from..to).map(|at| seen(at, None, "aten::add.out", &[2], &[at as f32, -(at as f32)])).collect()
        };
        let found = indices(&run(0, 3000), &run(20, 3000), Relation::TwoPrograms);
        assert!(found.iter().all(|(left, right, _)| *left == right + 20), "{:?}", found.first());
        assert_eq!(found.len(), 2980);
    }
}
