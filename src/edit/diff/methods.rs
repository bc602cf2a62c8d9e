//! Differences between two methods, of which is known what is what.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use edgepack_format::notation::ValueName;
use edgepack_format::pte::{AllocationDetails, Chain, EValue, FrameList, KernelTypes, Operator};
use edgepack_format::row::{Rows, Text};

use super::align::{Pair, gaps};
use super::matching::{Calls, Matched, call, equal, find};
use super::rest::{Targets, chain_rest, emptied, rest};
use super::side::{Call, CallKind, Side, count, items, members, row};
use super::words;
use super::{Differences, bare_delegate, bare_value};
use crate::edit::error::Error;

/// Compares two methods but for the bytes of their constants and payloads; returns what is what.
pub(super) fn compare(left: &Side<'_, '_>, right: &Side<'_, '_>, out: &mut Differences) -> Result<Matched, Error> {
    let matched = if have_equal_rows(left, right)? { equal(left)? } else { find(left, right)? };
    let told = [left, right].map(|side| vec![false; side.value_count()]);
    let path = format!("execution_plan[{}]", left.index);
    Comparison { left, right, matched: &matched, path, told, shared: 0, out }.all()?;
    Ok(matched)
}

/// Returns whether everything that indices refer to has the same index in both.
fn have_equal_rows(left: &Side<'_, '_>, right: &Side<'_, '_>) -> Result<bool, Error> {
    let (a, b) = (&left.plan, &right.plan);
    if count(&a.values) != count(&b.values) || count(&a.chains) != count(&b.chains) {
        return Ok(false);
    }
    if a.operators != b.operators || a.inputs != b.inputs || a.outputs != b.outputs {
        return Ok(false);
    }
    for index in 0..count(&a.values) {
        if row(&a.values, index)?.map(bare_value) != row(&b.values, index)?.map(bare_value) {
            return Ok(false);
        }
    }
    for index in 0..count(&a.chains) {
        let (ours, theirs) = (row(&a.chains, index)?.unwrap_or_default(), row(&b.chains, index)?.unwrap_or_default());
        if (ours.instructions, ours.inputs, ours.outputs) != (theirs.instructions, theirs.inputs, theirs.outputs) {
            return Ok(false);
        }
    }
    for index in 0..count(&a.delegates).max(count(&b.delegates)) {
        let (ours, theirs) = (row(&a.delegates, index)?, row(&b.delegates, index)?);
        if ours.map(bare_delegate) != theirs.map(bare_delegate) {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Comparison<'m, 'p, 'l, 'r> {
    left: &'m Side<'p, 'l>,
    right: &'m Side<'p, 'r>,
    matched: &'m Matched,
    path: String,
    /// Values of either side that a difference has told of, or that are the same as another in all that counts.
    told: [Vec<bool>; 2],
    /// Values that are shared otherwise.
    shared: usize,
    out: &'m mut Differences,
}

impl Comparison<'_, '_, '_, '_> {
    fn all(mut self) -> Result<(), Error> {
        let (left, right) = (self.left, self.right);
        self.out.rows(&self.path, &rest(&left.plan), &rest(&right.plan))?;
        let chains = count(&left.plan.chains).max(count(&right.plan.chains));
        for index in 0..chains {
            let path = format!("{}.chains[{index}]", self.path);
            match (row(&left.plan.chains, index)?, row(&right.plan.chains, index)?) {
                (Some(a), Some(b)) => {
                    let Some(calls) = self.matched.chains.get(index) else { continue };
                    self.chain(&path, &a, &b, calls)?;
                }
                (a, b) => {
                    let show = |chain: Option<Chain<'_>>| match chain {
                        Some(chain) => format!("{} instructions", count(&chain.instructions)),
                        None => "absent".to_owned(),
                    };
                    self.out.push(path, show(a), show(b));
                }
            }
        }
        for (name, a, b) in
            [("inputs", &left.plan.inputs, &right.plan.inputs), ("outputs", &left.plan.outputs, &right.plan.outputs)]
        {
            let (a, b): (Vec<i32>, Vec<i32>) = (items(a).collect(), items(b).collect());
            self.list(&format!("{}.{name}", self.path), &a, &b)?;
        }
        self.operators()?;
        self.delegates()?;
        self.values()?;
        let renumbered = self.matched.values.iter().filter(|(a, b)| a != b).count();
        self.out.renumbered += renumbered + self.shared;
        Ok(())
    }

    fn chain(&mut self, path: &str, a: &Chain<'_>, b: &Chain<'_>, calls: &Calls) -> Result<(), Error> {
        let (left, right) = (self.left, self.right);
        self.out.rows(path, &chain_rest(a), &chain_rest(b))?;
        for (name, a, b) in [("inputs", &a.inputs, &b.inputs), ("outputs", &a.outputs, &b.outputs)] {
            let (a, b): (Vec<i32>, Vec<i32>) = (items(a).collect(), items(b).collect());
            self.list(&format!("{path}.{name}"), &a, &b)?;
        }
        let (mut moved_a, mut moved_b) = (BTreeMap::new(), BTreeMap::new());
        for (x, y) in &calls.moved {
            moved_a.insert(*x, *y);
            moved_b.insert(*y, *x);
        }
        let lengths = (count(&a.instructions), count(&b.instructions));
        let targets = Targets::new(&calls.pairs, lengths);
        for (index, (ours, theirs)) in gaps(&calls.pairs, lengths.0, lengths.1).into_iter().enumerate() {
            let ours: Vec<usize> = ours.filter(|x| !moved_a.contains_key(x)).collect();
            let theirs: Vec<usize> = theirs.filter(|y| !moved_b.contains_key(y)).collect();
            if !ours.is_empty() || !theirs.is_empty() {
                for (side, chain, run) in [(0, a, &ours), (1, b, &theirs)] {
                    for index in run {
                        self.tell(side, &call(chain, *index)?.args)?;
                    }
                }
                let place = range(if ours.is_empty() { &theirs } else { &ours });
                let (mine, other) = (words::instructions(left, a, &ours)?, words::instructions(right, b, &theirs)?);
                self.out.push(format!("{path}.instructions{place}"), mine, other);
            }
            if let Some((x, y)) = calls.pairs.get(index) {
                self.call(path, (a, *x), (b, *y), &targets)?;
            }
        }
        for (x, y) in &calls.moved {
            let (mine, other) = (call(a, *x)?, call(b, *y)?);
            let show = |side, call: &Call, at| -> Result<_, Error> {
                Ok(format!("{} at {at}", words::instruction(side, call)?))
            };
            let (mine_text, other_text) = (show(left, &mine, x)?, show(right, &other, y)?);
            self.out.push(format!("{path}.instructions{}", arrow(*x, *y)), mine_text, other_text);
            self.call(path, (a, *x), (b, *y), &targets)?;
        }
        self.stack_traces(path, a, b, calls)
    }

    /// One instruction and the one that it is in the other method.
    fn call(
        &mut self,
        path: &str,
        (a, x): (&Chain<'_>, usize),
        (b, y): (&Chain<'_>, usize),
        targets: &Targets,
    ) -> Result<(), Error> {
        let (left, right) = (self.left, self.right);
        let (mine, other) = (call(a, x)?, call(b, y)?);
        let path = format!("{path}.instructions{}", arrow(x, y));
        let alike = match (mine.kind, other.kind) {
            (CallKind::Operator(_), CallKind::Operator(_)) => {
                operator(left, mine.kind)? == operator(right, other.kind)?
            }
            (CallKind::Delegate(ours), CallKind::Delegate(theirs)) => {
                match (usize::try_from(ours), usize::try_from(theirs)) {
                    (Ok(ours), Ok(theirs)) if self.matched.delegates.to(ours).is_some() => {
                        self.matched.delegates.to(ours) == Some(theirs)
                    }
                    // Indices that name nothing.
                    _ => ours == theirs,
                }
            }
            (CallKind::Jump(ours), CallKind::Jump(theirs)) => targets.same(ours, theirs),
            (ours, theirs) => ours == theirs,
        };
        if !alike || mine.args.len() != other.args.len() {
            self.tell(0, &mine.args)?;
            self.tell(1, &other.args)?;
            let ours = words::instruction(left, &mine)?;
            let mut theirs = words::instruction(right, &other)?;
            if ours == theirs {
                theirs.push_str(if matches!(mine.kind, CallKind::Jump(_)) {
                    ", another instruction"
                } else {
                    ", another"
                });
            }
            self.out.push(path, ours, theirs);
            return Ok(());
        }
        let mut before = None;
        for (index, (a, b)) in mine.args.iter().zip(&other.args).enumerate() {
            // What an operator returns is its last argument and the one that it is written to.
            if !self.is_same(*a, *b)? && before.replace((a, b)) != Some((a, b)) {
                self.pair(&format!("{path}.args[{index}]"), *a, *b)?;
            }
        }
        Ok(())
    }

    fn stack_traces(&mut self, path: &str, a: &Chain<'_>, b: &Chain<'_>, calls: &Calls) -> Result<(), Error> {
        let (length_a, length_b) = (count(&a.instructions), count(&b.instructions));
        // What is behind that of the last instruction belongs to none.
        let behind = |rows: &Option<Rows<'_, FrameList<'_>>>, length: usize| count(rows).saturating_sub(length);
        let rest = behind(&a.stacktrace, length_a).max(behind(&b.stacktrace, length_b));
        let rest = (0..rest).map(|index| (length_a + index, length_b + index));
        let mut first: Option<(Pair, usize)> = None;
        for (x, y) in calls.pairs.iter().chain(&calls.moved).copied().chain(rest) {
            let (ours, theirs) = (row(&a.stacktrace, x)?, row(&b.stacktrace, y)?);
            if ours != theirs {
                first = Some(first.map_or(((x, y), 0), |(pair, more)| (pair, more + 1)));
            }
        }
        let Some(((x, y), more)) = first else { return Ok(()) };
        let (ours, theirs) = (row(&a.stacktrace, x)?, row(&b.stacktrace, y)?);
        let show = |list: Option<FrameList<'_>>| -> Result<_, Error> {
            let Some(list) = list else { return Ok("absent".to_owned()) };
            let last = row(&list.items, count(&list.items).saturating_sub(1))?;
            let last = last.map(|frame| format!("{}:{}", frame.filename.as_deref().unwrap_or("?"), frame.lineno));
            Ok(format!("{} frames, the last of {}", count(&list.items), last.as_deref().unwrap_or("nothing")))
        };
        self.out.push(format!("{path}.stacktrace{}{}", arrow(x, y), and(more)), show(ours)?, show(theirs)?);
        Ok(())
    }

    /// Two lists of values.
    fn list(&mut self, path: &str, a: &[i32], b: &[i32]) -> Result<(), Error> {
        if a.len() == b.len() {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                if !self.is_same(*a, *b)? {
                    self.pair(&format!("{path}[{index}]"), *a, *b)?;
                }
            }
            return Ok(());
        }
        self.tell(0, a)?;
        self.tell(1, b)?;
        let show = |side: &Side<'_, '_>, list: &[i32]| -> Result<_, Error> {
            let some = list.iter().take(4).map(|index| words::value(side, *index)).collect::<Result<Vec<_>, _>>()?;
            let more = if list.len() > some.len() { ", …" } else { "" };
            Ok(format!("{}: {}{more}", list.len(), some.join(", ")))
        };
        self.out.push(path.to_owned(), show(self.left, a)?, show(self.right, b)?);
        Ok(())
    }

    /// Two values that do not match, at one place.
    fn pair(&mut self, path: &str, a: i32, b: i32) -> Result<(), Error> {
        self.tell(0, &[a])?;
        self.tell(1, &[b])?;
        let ours = format!("{}: {}", ValueName(a), words::value(self.left, a)?);
        let mut theirs = format!("{}: {}", ValueName(b), words::value(self.right, b)?);
        if let Some(own) = usize::try_from(b).ok().and_then(|b| self.matched.values.from(b)) {
            theirs.push_str(&format!(", which is {} of the first", ValueName(own)));
        }
        self.out.push(path.to_owned(), ours, theirs);
        Ok(())
    }

    fn is_same(&mut self, a: i32, b: i32) -> Result<bool, Error> {
        let same = self.matched.same(self.left, self.right, a, b)?;
        let (Ok(at_a), Ok(at_b)) = (usize::try_from(a), usize::try_from(b)) else { return Ok(same) };
        if same && self.matched.values.to(at_a) != Some(at_b) {
            self.shared += self.tell(0, &[a])? + self.tell(1, &[b])?;
        }
        Ok(same)
    }

    fn operators(&mut self) -> Result<(), Error> {
        let mut all: BTreeMap<(Option<String>, Option<String>), [usize; 2]> = BTreeMap::new();
        for (side, plan) in [&self.left.plan, &self.right.plan].into_iter().enumerate() {
            for operator in plan.operators.iter().flat_map(|rows| rows.iter()) {
                let operator = operator?;
                let names =
                    (operator.name.map(|name| name.into_owned()), operator.overload.map(|name| name.into_owned()));
                all.entry(names).or_default()[side] += 1;
            }
        }
        for ((name, overload), [ours, theirs]) in all.into_iter().filter(|(_, [ours, theirs])| ours != theirs) {
            let show = |times| match times {
                0 => "absent".to_owned(),
                1 => "present".to_owned(),
                times => format!("{times} times"),
            };
            let name = words::operator_name(name.as_deref(), overload.as_deref());
            self.out.push(format!("{}.operators[{name:?}]", self.path), show(ours), show(theirs));
        }
        Ok(())
    }

    fn delegates(&mut self) -> Result<(), Error> {
        let (left, right) = (self.left, self.right);
        let path = |index: usize| format!("execution_plan[{}].delegates[{index}]", left.index);
        for index in 0..count(&left.plan.delegates) {
            let ours = row(&left.plan.delegates, index)?.map(bare_delegate);
            match self.matched.delegates.to(index) {
                Some(other) => {
                    let theirs = row(&right.plan.delegates, other)?.map(bare_delegate);
                    self.out.rows(&path(index), &ours, &theirs)?;
                }
                None => self.out.push(path(index), delegate_id(ours.and_then(|row| row.id)), "absent".to_owned()),
            }
        }
        for index in (0..count(&right.plan.delegates)).filter(|index| self.matched.delegates.from(*index).is_none()) {
            let theirs = row(&right.plan.delegates, index)?;
            self.out.push(path(index), "absent".to_owned(), delegate_id(theirs.and_then(|row| row.id)));
        }
        Ok(())
    }

    fn values(&mut self) -> Result<(), Error> {
        let mut plans: Option<(String, [AllocationDetails; 2], usize)> = None;
        let mut known: HashMap<(String, String, String), usize> = HashMap::new();
        let mut more: Vec<usize> = Vec::new();
        let first = self.out.list.len();
        for index in 0..self.left.value_count() {
            let Some(other) = self.matched.values.to(index) else {
                self.alone(0, index)?;
                continue;
            };
            let path = format!("{}.values{}", self.path, arrow(index, other));
            let ours = row(&self.left.plan.values, index)?.map(bare_value).unwrap_or_default();
            let theirs = row(&self.right.plan.values, other)?.map(bare_value).unwrap_or_default();
            let before = self.out.list.len();
            self.value(&path, ours, theirs, &mut plans)?;
            // A field that has the same two values again and again is one difference.
            for one in self.out.list.split_off(before) {
                let field = one.path.get(path.len()..).unwrap_or_default().to_owned();
                more.resize(self.out.list.len() - first, 0);
                match known.entry((field, one.left.clone(), one.right.clone())) {
                    Entry::Occupied(at) => more[*at.get()] += 1,
                    Entry::Vacant(free) => {
                        free.insert(more.len());
                        more.push(0);
                        self.out.list.push(one);
                    }
                }
            }
        }
        for (one, more) in self.out.list[first..].iter_mut().zip(more) {
            one.path.push_str(&and(more));
        }
        for index in 0..self.right.value_count() {
            if self.matched.values.from(index).is_none() {
                self.alone(1, index)?;
            }
        }
        if let Some((path, [ours, theirs], more)) = plans {
            let show = |place: AllocationDetails| format!("memory {} at {}", place.memory_id, place.memory_offset());
            self.out.push(format!("{path}.allocation_info{}", and(more)), show(ours), show(theirs));
        }
        Ok(())
    }

    fn value(
        &mut self,
        path: &str,
        mut ours: EValue<'_>,
        mut theirs: EValue<'_>,
        plans: &mut Option<(String, [AllocationDetails; 2], usize)>,
    ) -> Result<(), Error> {
        if let (Some(a), Some(b)) = (ours.val.as_ref().and_then(members), theirs.val.as_ref().and_then(members)) {
            self.list(&format!("{path}.items"), &a, &b)?;
            emptied(&mut ours);
            emptied(&mut theirs);
        }
        if let (Some(KernelTypes::Tensor(a)), Some(KernelTypes::Tensor(b))) = (&mut ours.val, &mut theirs.val)
            && let (Some(place), Some(other)) = (a.allocation_info, b.allocation_info)
        {
            (a.allocation_info, b.allocation_info) = (None, None);
            if place != other {
                match plans {
                    Some((_, _, more)) => *more += 1,
                    None => *plans = Some((path.to_owned(), [place, other], 0)),
                }
            }
        }
        self.out.rows(path, &ours, &theirs)
    }

    /// A value that nothing in the other method is, unless a difference told of it.
    fn alone(&mut self, side: usize, index: usize) -> Result<(), Error> {
        if self.told[side].get(index).copied().unwrap_or(true) {
            return Ok(());
        }
        let owner =
            if side == 0 { words::value(self.left, index as i32) } else { words::value(self.right, index as i32) };
        let mut texts = [owner?, "absent".to_owned()];
        texts.rotate_right(side);
        let [ours, theirs] = texts;
        self.out.push(format!("{}.values[{index}]", self.path), ours, theirs);
        Ok(())
    }

    /// Notes that values, and what lists of them hold, were told of; returns how many of them were not and match nothing.
    fn tell(&mut self, side: usize, values: &[i32]) -> Result<usize, Error> {
        let mut alone = 0;
        for index in values {
            if !self.mark(side, *index, &mut alone) {
                continue;
            }
            let plan = if side == 0 { &self.left.plan } else { &self.right.plan };
            let value = row(&plan.values, usize::try_from(*index).unwrap_or(usize::MAX))?;
            for item in value.and_then(|value| members(&value.val?)).into_iter().flatten() {
                self.mark(side, item, &mut alone);
            }
        }
        Ok(alone)
    }

    /// Returns whether a value is there and was not told of.
    fn mark(&mut self, side: usize, index: i32, alone: &mut usize) -> bool {
        let Ok(at) = usize::try_from(index) else { return false };
        let Some(told) = self.told[side].get_mut(at).filter(|told| !**told) else { return false };
        *told = true;
        let values = &self.matched.values;
        let other = if side == 0 { values.to(at) } else { values.from(at) };
        *alone += usize::from(other.is_none());
        true
    }
}

fn operator<'a>(side: &Side<'_, 'a>, kind: CallKind) -> Result<Result<Operator<'a>, CallKind>, Error> {
    let CallKind::Operator(index) = kind else { return Ok(Err(kind)) };
    let found = usize::try_from(index).map_or(Ok(None), |index| row(&side.plan.operators, index))?;
    Ok(found.ok_or(kind))
}

fn delegate_id(id: Option<Text<'_>>) -> String {
    id.map_or_else(|| "without a name".to_owned(), |id| id.into_owned())
}

/// The place of an instruction or value, in both methods if it is not the same.
fn arrow(left: usize, right: usize) -> String {
    if left == right { format!("[{left}]") } else { format!("[{left}→{right}]") }
}

/// The places of instructions in a row, but for some that moved.
fn range(run: &[usize]) -> String {
    match run {
        [] => "[]".to_owned(),
        [one] => format!("[{one}]"),
        [first, .., last] => format!("[{first}..{}]", last + 1),
    }
}

fn and(more: usize) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
