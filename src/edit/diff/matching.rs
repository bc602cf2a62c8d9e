//! Matching of the rows of two methods: instructions by alignment, values and delegates by the roles they have
//! in instructions that match, then by content, then by position.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use edgepack_format::pte::{Chain, EValue, KernelTypes, notation};
use edgepack_format::wire::ReadError;

use super::align::{Pair, align, gaps, once_in_both};
use super::made_up;
use super::side::{Call, CallKeys, CallKind, Side, ValueKeys, at, count, items, key, members, row};
use crate::edit::program::name_of;

/// Items of lists that are compared, in multiples of what a method has, before lists count as different.
const MOST_ITEMS: u64 = 16;

/// Indices of the one side and of the other, one to one.
pub(super) struct Pairs {
    to: Vec<u32>,
    from: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Pairs {
    fn new(left: usize, right: usize) -> Self {
        Pairs { to: vec![NONE; left], from: vec![NONE; right] }
    }

    fn same(count: usize) -> Self {
        let all: Vec<u32> = (0..count as u32).collect();
        Pairs { to: all.clone(), from: all }
    }

    /// Makes a pair of two that are in none; false if one of them is, or does not exist.
    fn pair(&mut self, left: usize, right: usize) -> bool {
        match (self.to.get_mut(left), self.from.get_mut(right)) {
            (Some(to), Some(from)) if *to == NONE && *from == NONE => {
                (*to, *from) = (right as u32, left as u32);
                true
            }
            _ => false,
        }
    }

    pub(super) fn to(&self, left: usize) -> Option<usize> {
        self.to.get(left).filter(|to| **to != NONE).map(|to| *to as usize)
    }

    pub(super) fn from(&self, right: usize) -> Option<usize> {
        self.from.get(right).filter(|from| **from != NONE).map(|from| *from as usize)
    }

    /// All pairs in the order of the left side.
    pub(super) fn iter(&self) -> impl Iterator<Item = Pair> + '_ {
        (0..self.to.len()).filter_map(|left| Some((left, self.to(left)?)))
    }
}

/// Instructions of a chain.
pub(super) struct Calls {
    /// Pairs in order on both sides.
    pub(super) pairs: Vec<Pair>,
    /// Pairs that are elsewhere in the order.
    pub(super) moved: Vec<Pair>,
}

/// Rows of two methods that are the same thing.
pub(super) struct Matched {
    pub(super) values: Pairs,
    pub(super) delegates: Pairs,
    pub(super) chains: Vec<Calls>,
    /// Values that may change while the method runs, of either side.
    written: [Vec<bool>; 2],
    /// Lists of which is known whether they hold the same.
    lists: RefCell<HashMap<(i32, i32), bool>>,
    budget: Cell<u64>,
}

/// Matches methods whose rows are equal: everything with what has its index.
pub(super) fn equal(side: &Side<'_, '_>) -> Result<Matched, ReadError> {
    let mut chains = Vec::new();
    for chain in side.plan.chains.iter().flat_map(|rows| rows.iter()) {
        let pairs = (0..count(&chain?.instructions)).map(|at| (at, at)).collect();
        chains.push(Calls { pairs, moved: Vec::new() });
    }
    Ok(Matched {
        values: Pairs::same(side.value_count()),
        delegates: Pairs::same(count(&side.plan.delegates)),
        chains,
        written: Default::default(),
        lists: RefCell::default(),
        budget: Cell::new(0),
    })
}

/// Certainty that two instructions are the same; smaller is surer.
type Tier = usize;

/// Finds what is what in two methods.
pub(super) fn find(left: &Side<'_, '_>, right: &Side<'_, '_>) -> Result<Matched, ReadError> {
    let keys = [left.value_keys()?, right.value_keys()?];
    let written = [written(left)?, written(right)?];
    let rows = (left.value_count() + right.value_count()) as u64;
    let mut found = Matched {
        values: Pairs::new(left.value_count(), right.value_count()),
        delegates: Pairs::new(count(&left.plan.delegates), count(&right.plan.delegates)),
        chains: Vec::new(),
        written,
        lists: RefCell::default(),
        budget: Cell::new(MOST_ITEMS * (rows + 64)),
    };
    found.by_name(left, right)?;
    for (ours, theirs) in [(&left.plan.inputs, &right.plan.inputs), (&left.plan.outputs, &right.plan.outputs)] {
        let (ours, theirs): (Vec<i32>, Vec<i32>) = (items(ours).collect(), items(theirs).collect());
        found.ends(left, right, &keys, &ours, &theirs)?;
    }
    let chains = count(&left.plan.chains).min(count(&right.plan.chains));
    let mut all = Vec::with_capacity(chains);
    for index in 0..chains {
        let (Some(ours), Some(theirs)) = (row(&left.plan.chains, index)?, row(&right.plan.chains, index)?) else {
            break;
        };
        let call_keys =
            [left.call_keys(&ours.instructions, &keys[0])?, right.call_keys(&theirs.instructions, &keys[1])?];
        let [mine, other] = &call_keys;
        let refined = [refined(left, &ours, mine)?, refined(right, &theirs, other)?];
        let pairs = calls((&refined[0], mine), (&refined[1], other));
        all.push((ours, theirs, call_keys, pairs));
    }
    // What is sure for all instructions comes before what is not.
    for tier in 0..=TIERS {
        for (ours, theirs, _, pairs) in &all {
            for (a, b, _) in pairs.iter().filter(|pair| pair.2 == tier) {
                found.roles(left, right, &keys, &call(ours, *a)?, &call(theirs, *b)?)?;
            }
        }
    }
    for (ours, theirs, call_keys, pairs) in all {
        let pairs: Vec<Pair> = pairs.into_iter().map(|(a, b, _)| (a, b)).collect();
        let moved = found.moved(left, right, &keys, (&ours, &theirs), &call_keys, &pairs)?;
        found.chains.push(Calls { pairs, moved });
    }
    found.left_over(left, right, &keys)?;
    Ok(found)
}

pub(super) fn call(chain: &Chain<'_>, index: usize) -> Result<Call, ReadError> {
    let instruction = row(&chain.instructions, index)?.unwrap_or_default();
    Ok(Call::from(instruction))
}

/// Number of ways in which instructions match; in the last tier they have nothing but their place in common.
const TIERS: usize = 4;

/// Instructions away from one that its refined key knows of.
const ROUNDS: usize = 4;

/// Keys of instructions that also know what else is done with their values, and with the values of those instructions, to
/// tell equal ones apart.
fn refined(side: &Side<'_, '_>, chain: &Chain<'_>, keys: &[CallKeys]) -> Result<Vec<u64>, ReadError> {
    let mut now: Vec<u64> = keys.iter().map(|keys| keys[0]).collect();
    let mut uses = vec![0u64; side.value_count()];
    for _ in 0..ROUNDS {
        uses.fill(0);
        let mut used = |index: i32, by: u64| {
            if let Some(all) = usize::try_from(index).ok().and_then(|index| uses.get_mut(index)) {
                *all = all.wrapping_add(by);
            }
        };
        for (place, index) in items(&side.plan.outputs).enumerate() {
            used(index, key(("output", place)));
        }
        for (index, own) in now.iter().enumerate() {
            for (place, arg) in call(chain, index)?.args.into_iter().enumerate() {
                used(arg, key((own, place)));
            }
        }
        for (index, own) in now.iter_mut().enumerate() {
            *own = call(chain, index)?.args.into_iter().fold(*own, |all, arg| key((all, at(&uses, arg))));
        }
    }
    Ok(now)
}

/// Pairs of instructions: by all that they are and what is done with their values, by all that they are, by the kinds of
/// their values, by operator, and what was replaced by what.
fn calls(a: (&[u64], &[CallKeys]), b: (&[u64], &[CallKeys])) -> Vec<(usize, usize, Tier)> {
    let level = |keys: &[CallKeys], level: usize| keys.iter().map(|keys| keys[level]).collect::<Vec<u64>>();
    let mut pairs: Vec<(usize, usize, Tier)> = once_in_both(a.0, b.0).into_iter().map(|(a, b)| (a, b, 0)).collect();
    let (a, b) = (a.1, b.1);
    for tier in 1..=TIERS {
        let places: Vec<Pair> = pairs.iter().map(|(a, b, _)| (*a, *b)).collect();
        let mut all = Vec::with_capacity(a.len().min(b.len()));
        for (index, (ours, theirs)) in gaps(&places, a.len(), b.len()).into_iter().enumerate() {
            let (from_a, from_b) = (ours.start, theirs.start);
            let found = match (tier, ours.len(), theirs.len()) {
                (TIERS, 1, 1) => vec![(0, 0)],
                (TIERS, ..) | (_, 0, _) | (_, _, 0) => Vec::new(),
                (1, ..) => once_in_both(&level(&a[ours], 0), &level(&b[theirs], 0)),
                _ => align(&level(&a[ours], tier - 1), &level(&b[theirs], tier - 1)),
            };
            all.extend(found.into_iter().map(|(x, y)| (from_a + x, from_b + y, tier)));
            all.extend(pairs.get(index));
        }
        pairs = all;
    }
    pairs
}

/// Values that instructions may write, and inputs.
fn written(side: &Side<'_, '_>) -> Result<Vec<bool>, ReadError> {
    let mut written = vec![false; side.value_count()];
    let mut mark = |index: i32| {
        if let Some(place) = usize::try_from(index).ok().and_then(|index| written.get_mut(index)) {
            *place = true;
        }
    };
    items(&side.plan.inputs).for_each(&mut mark);
    for chain in side.plan.chains.iter().flat_map(|rows| rows.iter()) {
        for instruction in chain?.instructions.iter().flat_map(|rows| rows.iter()) {
            let call = Call::from(instruction?);
            match call.kind {
                CallKind::Delegate(_) => call.args.into_iter().for_each(&mut mark),
                // An operator of numbers returns its result in the last.
                _ => call.args.last().copied().into_iter().for_each(&mut mark),
            }
        }
    }
    Ok(written)
}

impl Matched {
    /// Tensors with names that either side has once.
    fn by_name(&mut self, left: &Side<'_, '_>, right: &Side<'_, '_>) -> Result<(), ReadError> {
        let names = |side: &Side<'_, '_>| -> Result<_, ReadError> {
            let mut names: HashMap<String, Option<usize>> = HashMap::new();
            for index in 0..side.value_count() {
                let Some(EValue { val: Some(KernelTypes::Tensor(tensor)) }) = side.value(index as i32)? else {
                    continue;
                };
                if let Some(name) = name_of(&tensor).filter(|name| !made_up(name)) {
                    names.entry(name.to_owned()).and_modify(|place| *place = None).or_insert(Some(index));
                }
            }
            Ok(names)
        };
        let (ours, theirs) = (names(left)?, names(right)?);
        for (name, index) in ours {
            if let (Some(a), Some(Some(b))) = (index, theirs.get(&name)) {
                self.values.pair(a, *b);
            }
        }
        Ok(())
    }

    /// Inputs or outputs: by position if there are as many, otherwise by alignment of what they are.
    fn ends(
        &mut self,
        left: &Side<'_, '_>,
        right: &Side<'_, '_>,
        keys: &[ValueKeys; 2],
        ours: &[i32],
        theirs: &[i32],
    ) -> Result<(), ReadError> {
        let pairs = if ours.len() == theirs.len() {
            (0..ours.len()).map(|at| (at, at)).collect()
        } else {
            let of =
                |list: &[i32], side: &ValueKeys| list.iter().map(|item| at(&side.coarse, *item)).collect::<Vec<_>>();
            align(&of(ours, &keys[0]), &of(theirs, &keys[1]))
        };
        for (a, b) in pairs {
            self.pair(left, right, ours[a], theirs[b])?;
        }
        Ok(())
    }

    /// Pairs what two instructions that match are called with.
    fn roles(
        &mut self,
        left: &Side<'_, '_>,
        right: &Side<'_, '_>,
        keys: &[ValueKeys; 2],
        ours: &Call,
        theirs: &Call,
    ) -> Result<(), ReadError> {
        if let (CallKind::Delegate(a), CallKind::Delegate(b)) = (ours.kind, theirs.kind)
            && let (Ok(a), Ok(b)) = (usize::try_from(a), usize::try_from(b))
        {
            self.delegates.pair(a, b);
        }
        if ours.args.len() == theirs.args.len() {
            for (a, b) in ours.args.iter().zip(&theirs.args) {
                self.pair(left, right, *a, *b)?;
            }
            return Ok(());
        }
        let of = |call: &Call, side: &ValueKeys| call.args.iter().map(|arg| at(&side.coarse, *arg)).collect::<Vec<_>>();
        for (a, b) in align(&of(ours, &keys[0]), &of(theirs, &keys[1])) {
            self.pair(left, right, ours.args[a], theirs.args[b])?;
        }
        Ok(())
    }

    /// Pairs two values of one kind, and what lists of one length hold.
    fn pair(&mut self, left: &Side<'_, '_>, right: &Side<'_, '_>, a: i32, b: i32) -> Result<(), ReadError> {
        let mut waiting = vec![(a, b)];
        while let Some((a, b)) = waiting.pop() {
            let (Ok(at_a), Ok(at_b)) = (usize::try_from(a), usize::try_from(b)) else { continue };
            if self.values.to(at_a).is_some() || self.values.from(at_b).is_some() {
                continue;
            }
            let (Some(ours), Some(theirs)) = (left.value(a)?, right.value(b)?) else { continue };
            if kind(&ours) != kind(&theirs) || !self.values.pair(at_a, at_b) {
                continue;
            }
            let (ours, theirs) = (ours.val.as_ref().and_then(members), theirs.val.as_ref().and_then(members));
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours.len() == theirs.len()
            {
                waiting.extend(ours.into_iter().zip(theirs).rev());
            }
        }
        Ok(())
    }

    /// Instructions that are the same at another place: with equal keys, and values that match.
    fn moved(
        &mut self,
        left: &Side<'_, '_>,
        right: &Side<'_, '_>,
        keys: &[ValueKeys; 2],
        chains: (&Chain<'_>, &Chain<'_>),
        calls: &[Vec<CallKeys>; 2],
        pairs: &[Pair],
    ) -> Result<Vec<Pair>, ReadError> {
        let between = gaps(pairs, calls[0].len(), calls[1].len());
        let mut there: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for index in between.iter().flat_map(|gap| gap.1.clone()) {
            there.entry(calls[1][index][0]).or_default().push_back(index);
        }
        let mut moved = Vec::new();
        for a in between.iter().flat_map(|gap| gap.0.clone()) {
            let Entry::Occupied(mut waiting) = there.entry(calls[0][a][0]) else { continue };
            let Some(&b) = waiting.get().front() else { continue };
            let (ours, theirs) = (call(chains.0, a)?, call(chains.1, b)?);
            let fits = |x: i32, y: i32| -> Result<bool, ReadError> {
                let (ours, theirs) = (usize::try_from(x).ok(), usize::try_from(y).ok());
                let free = ours.is_some_and(|x| self.values.to(x).is_none())
                    && theirs.is_some_and(|y| self.values.from(y).is_none());
                Ok((free && at(&keys[0].fine, x) == at(&keys[1].fine, y)) || self.same(left, right, x, y)?)
            };
            let mut all = ours.args.len() == theirs.args.len();
            for (x, y) in ours.args.iter().zip(&theirs.args) {
                all = all && fits(*x, *y)?;
            }
            if all {
                waiting.get_mut().pop_front();
                self.roles(left, right, keys, &ours, &theirs)?;
                moved.push((a, b));
            }
        }
        Ok(moved)
    }

    /// Pairs what no instruction that matches refers to, by content, what nothing refers to by index, and delegates that
    /// nothing calls.
    fn left_over(&mut self, left: &Side<'_, '_>, right: &Side<'_, '_>, keys: &[ValueKeys; 2]) -> Result<(), ReadError> {
        let (ours, theirs) = (referred(left)?, referred(right)?);
        let mut there: HashMap<u64, VecDeque<usize>> = HashMap::new();
        for b in (0..theirs.len()).filter(|b| self.values.from(*b).is_none()) {
            there.entry(keys[1].fine[b]).or_default().push_back(b);
        }
        for a in 0..ours.len() {
            if self.values.to(a).is_none()
                && let Some(b) = there.get_mut(&keys[0].fine[a]).and_then(VecDeque::pop_front)
            {
                self.pair(left, right, a as i32, b as i32)?;
            }
        }
        for index in (0..ours.len().min(theirs.len())).filter(|index| !ours[*index] && !theirs[*index]) {
            self.pair(left, right, index as i32, index as i32)?;
        }
        let ids = |side: &Side<'_, '_>| -> Result<Vec<u64>, ReadError> {
            let rows = side.plan.delegates.iter().flat_map(|rows| rows.iter());
            rows.map(|delegate| Ok(key(delegate?.id.as_deref()))).collect()
        };
        let (ours, theirs) = (ids(left)?, ids(right)?);
        let free_a: Vec<usize> = (0..ours.len()).filter(|a| self.delegates.to(*a).is_none()).collect();
        let free_b: Vec<usize> = (0..theirs.len()).filter(|b| self.delegates.from(*b).is_none()).collect();
        let of = |free: &[usize], ids: &[u64]| free.iter().map(|index| ids[*index]).collect::<Vec<_>>();
        for (a, b) in align(&of(&free_a, &ours), &of(&free_b, &theirs)) {
            self.delegates.pair(free_a[a], free_b[b]);
        }
        Ok(())
    }

    /// Returns whether two values play the same part: they match, or hold the same and never change.
    pub(super) fn same(&self, left: &Side<'_, '_>, right: &Side<'_, '_>, a: i32, b: i32) -> Result<bool, ReadError> {
        let there = |index: i32, side: &Side<'_, '_>| usize::try_from(index).ok().filter(|at| *at < side.value_count());
        let (Some(at_a), Some(at_b)) = (there(a, left), there(b, right)) else {
            return Ok(a == b && there(a, left).is_none() && there(b, right).is_none());
        };
        if self.values.to(at_a) == Some(at_b) {
            return Ok(true);
        }
        if let Some(known) = self.lists.borrow().get(&(a, b)) {
            return Ok(*known);
        }
        let changes = |side: usize, at: usize| self.written[side].get(at).copied().unwrap_or(true);
        if changes(0, at_a) || changes(1, at_b) {
            return Ok(false);
        }
        let (ours, theirs) = (left.value(a)?.unwrap_or_default(), right.value(b)?.unwrap_or_default());
        let same = match (ours.val.as_ref().and_then(members), theirs.val.as_ref().and_then(members)) {
            (Some(mine), Some(other)) => {
                let mut same = kind(&ours) == kind(&theirs) && mine.len() == other.len() && self.spend(mine.len());
                for (x, y) in mine.into_iter().zip(other) {
                    same = same && self.same_item(left, right, x, y)?;
                }
                self.lists.borrow_mut().insert((a, b), same);
                same
            }
            (None, None) => self.spend(1) && plain(&ours) && alike(&ours, &theirs),
            _ => false,
        };
        Ok(same)
    }

    /// As [`Matched::same`] for what a list holds; lists in lists match or do not.
    fn same_item(&self, left: &Side<'_, '_>, right: &Side<'_, '_>, a: i32, b: i32) -> Result<bool, ReadError> {
        let (Ok(at_a), Ok(at_b)) = (usize::try_from(a), usize::try_from(b)) else { return Ok(a == b) };
        if self.values.to(at_a) == Some(at_b) {
            return Ok(true);
        }
        let changes = |side: usize, at: usize| self.written[side].get(at).copied().unwrap_or(true);
        let (Some(ours), Some(theirs)) = (left.value(a)?, right.value(b)?) else { return Ok(false) };
        Ok(!changes(0, at_a) && !changes(1, at_b) && plain(&ours) && alike(&ours, &theirs))
    }

    /// Takes some of the work that comparisons of lists may be.
    fn spend(&self, items: usize) -> bool {
        let left = self.budget.get().checked_sub(items as u64);
        left.inspect(|left| self.budget.set(*left)).is_some()
    }
}

fn kind(value: &EValue<'_>) -> Option<&'static str> {
    value.val.as_ref().map(notation::kind)
}

/// Returns whether a value is all in its row.
fn plain(value: &EValue<'_>) -> bool {
    !matches!(value.val, Some(KernelTypes::Tensor(_) | KernelTypes::Unknown(_)))
}

/// Returns whether two values hold the same, doubles to the bit.
fn alike(a: &EValue<'_>, b: &EValue<'_>) -> bool {
    match (&a.val, &b.val) {
        (Some(KernelTypes::Double(a)), Some(KernelTypes::Double(b))) => {
            a.double_val.to_bits() == b.double_val.to_bits()
        }
        (Some(KernelTypes::DoubleList(a)), Some(KernelTypes::DoubleList(b))) => {
            items(&a.items).map(f64::to_bits).eq(items(&b.items).map(f64::to_bits))
        }
        (a, b) => a == b,
    }
}

/// Values that instructions, inputs and outputs name, and what lists of them hold.
fn referred(side: &Side<'_, '_>) -> Result<Vec<bool>, ReadError> {
    let mut named = vec![false; side.value_count()];
    let mut mark = |index: i32| {
        if let Some(place) = usize::try_from(index).ok().and_then(|index| named.get_mut(index)) {
            *place = true;
        }
    };
    items(&side.plan.inputs).chain(items(&side.plan.outputs)).for_each(&mut mark);
    for chain in side.plan.chains.iter().flat_map(|rows| rows.iter()) {
        for instruction in chain?.instructions.iter().flat_map(|rows| rows.iter()) {
            Call::from(instruction?).args.into_iter().for_each(&mut mark);
        }
    }
    let lists: Vec<usize> = named.iter().enumerate().filter(|(_, named)| **named).map(|(index, _)| index).collect();
    for index in lists {
        let value = row(&side.plan.values, index)?.and_then(|value| members(&value.val?));
        for item in value.into_iter().flatten() {
            if let Some(place) = usize::try_from(item).ok().and_then(|item| named.get_mut(item)) {
                *place = true;
            }
        }
    }
    Ok(named)
}
