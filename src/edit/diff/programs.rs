//! Differences between two programs: methods by name, then what is in them, then bytes.

use std::collections::{HashMap, HashSet, VecDeque};

use edgepack_format::pte::{BackendDelegate, DataLocation, ExecutionPlan, KernelTypes, Tensor};
use edgepack_format::wire::ReadError;
use serde::Serialize;

use super::align::{Pair, align};
use super::contents::{Found, OfProgram, Place};
use super::matching::Matched;
use super::methods;
use super::side::{Side, count, items, key, row};
use super::{DiffOptions, Differences, show};
use crate::edit::content::Content;
use crate::edit::error::Error;
use crate::edit::program::{constant_name, constant_of, name_of};

/// Two ranges, and the tensor that both show.
type Ranges = (((usize, u64, u64), (usize, u64, u64)), String);

/// Behind the label of a difference, and its sides.
type Rest = (String, String, String);

/// Tensors that were compared: many may show one range, which is not read again.
#[derive(Default)]
struct Known {
    ranges: HashMap<Ranges, (Content, Content, Option<Rest>)>,
    /// Labels of those that differ.
    told: HashSet<String>,
}

impl Differences {
    pub(super) fn programs(
        &mut self,
        left: &OfProgram<'_, '_>,
        right: &OfProgram<'_, '_>,
        options: &DiffOptions,
    ) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Head {
            version: u32,
        }
        self.rows("", &Head { version: left.program.version }, &Head { version: right.program.version })?;
        let (pairs, alone) = methods(left, right)?;
        let mut matched = Vec::with_capacity(pairs.len());
        for (a, b) in pairs {
            let (Some(ours), Some(theirs)) = (side(left, a)?, side(right, b)?) else { continue };
            matched.push((a, b, methods::compare(&ours, &theirs, self)?));
        }
        for (place, index) in alone {
            let mut texts = ["absent".to_owned(), "absent".to_owned()];
            let program = if place == 0 { left } else { right };
            if let (Some(side), Some(text)) = (side(program, index)?, texts.get_mut(place)) {
                *text = summary(&side.plan)?;
            }
            let [ours, theirs] = texts;
            self.push(format!("execution_plan[{index}]"), ours, theirs);
        }
        // Which keys were renamed is known before payloads that name them are compared.
        let before = self.list.len();
        self.contents(left, right, options)?;
        let named = self.list.split_off(before);
        let mut known = Known::default();
        for (a, b, matched) in &matched {
            let (Some(ours), Some(theirs)) = (side(left, *a)?, side(right, *b)?) else { continue };
            self.constants(&ours, &theirs, matched, &mut known, options)?;
        }
        for (a, b, matched) in &matched {
            let (Some(ours), Some(theirs)) = (side(left, *a)?, side(right, *b)?) else { continue };
            self.payloads(&ours, &theirs, matched)?;
        }
        self.list.extend(named);
        Ok(())
    }

    /// Bytes of constants and initial values that are the same tensors.
    fn constants(
        &mut self,
        left: &Side<'_, '_>,
        right: &Side<'_, '_>,
        matched: &Matched,
        known: &mut Known,
        options: &DiffOptions,
    ) -> Result<(), Error> {
        for (a, b) in matched.values.iter() {
            let ours = row(&left.plan.values, a)?.and_then(|value| value.val);
            let theirs = row(&right.plan.values, b)?.and_then(|value| value.val);
            let (Some(KernelTypes::Tensor(ours)), Some(KernelTypes::Tensor(theirs))) = (ours, theirs) else { continue };
            let mine = left.program.value(Place::Value(left.index, a), &ours)?;
            let other = right.program.value(Place::Value(right.index, b), &theirs)?;
            let label = label(left, a, &ours, mine.is_some()).or_else(|| label(right, b, &theirs, other.is_some()));
            let Some(label) = label else { continue };
            match (mine, other) {
                (Some((content, Some(layout))), Some((other, Some(their)))) if layout == their => {
                    let places = content.place().zip(other.place()).map(|places| (places, layout.to_string()));
                    if let Some((_, _, found)) = places.as_ref().and_then(|places| known.ranges.get(places)) {
                        if let Some((rest, left, right)) = found
                            && known.told.insert(label.clone())
                        {
                            self.push_content(format!("{label}{rest}"), left.clone(), right.clone());
                        }
                        continue;
                    }
                    let before = self.list.len();
                    self.elements(&label, &layout, &content, &other, options)?;
                    let found = self.list.get(before).map(|one| {
                        let rest = one.path.strip_prefix(&*label).unwrap_or_default();
                        (rest.to_owned(), one.left.clone(), one.right.clone())
                    });
                    if found.is_some() {
                        known.told.insert(label);
                    }
                    if let Some(places) = places {
                        // Held, so that no other source comes to be at its address.
                        known.ranges.insert(places, (content, other, found));
                    }
                }
                // Different layouts are differences of rows.
                (Some(_), Some(_)) => {}
                (mine, other) => self.push(label, show(mine.as_ref()), show(other.as_ref())),
            }
        }
        Ok(())
    }

    /// Bytes of delegates.
    fn payloads(&mut self, left: &Side<'_, '_>, right: &Side<'_, '_>, matched: &Matched) -> Result<(), Error> {
        // Many delegates may have one payload, which is compared once.
        let mut same = HashSet::new();
        let of = |delegate: &BackendDelegate<'_>| {
            delegate.processed.as_ref().map(|at| (at.location == DataLocation::SEGMENT, at.index))
        };
        for (a, b) in matched.delegates.iter() {
            let (ours, theirs) = (row(&left.plan.delegates, a)?, row(&right.plan.delegates, b)?);
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            let both = (of(&ours), of(&theirs));
            if same.contains(&both) {
                continue;
            }
            let before = self.list.len();
            let place = Place::Delegate(left.index, a);
            let mine: Option<Found> = left.program.delegate(place, &ours)?;
            let other = right.program.delegate(Place::Delegate(right.index, b), &theirs)?;
            match (mine, other) {
                (Some((mine, _)), Some((other, _))) => self.payload(place, &mine, &other)?,
                (None, None) => {}
                (mine, other) => self.push(place.path(), show(mine.as_ref()), show(other.as_ref())),
            }
            if self.list.len() == before {
                same.insert(both);
            }
        }
        Ok(())
    }
}

/// Label of the bytes of a tensor, if it has some: by name, as [`patch`](crate::edit::patch()) does.
fn label(side: &Side<'_, '_>, index: usize, tensor: &Tensor<'_>, has_bytes: bool) -> Option<String> {
    if !has_bytes {
        return None;
    }
    Some(match constant_of(tensor) {
        Some(number) => format!("constants[{:?}]", constant_name(tensor, number)),
        None => match name_of(tensor) {
            Some(name) => format!("initial_values[{name:?}]"),
            None => format!("initial_values of execution_plan[{}].values[{index}]", side.index),
        },
    })
}

fn side<'p, 'a>(program: &'p OfProgram<'p, 'a>, index: usize) -> Result<Option<Side<'p, 'a>>, ReadError> {
    let plan = row(&program.program.execution_plan, index)?;
    Ok(plan.map(|plan| Side { program, index, plan }))
}

fn summary(plan: &ExecutionPlan<'_>) -> Result<String, ReadError> {
    let mut instructions = 0;
    for chain in plan.chains.iter().flat_map(|rows| rows.iter()) {
        instructions += count(&chain?.instructions);
    }
    let name = plan.name.as_deref().unwrap_or_default();
    Ok(format!("method {name:?} of {instructions} instructions and {} values", count(&plan.values)))
}

/// Methods of which the one is the other, and those of either side that are none: by name, then by how much is in them,
/// then by position if there are as many.
#[allow(clippy::type_complexity, reason = "two lists")]
fn methods(left: &OfProgram<'_, '_>, right: &OfProgram<'_, '_>) -> Result<(Vec<Pair>, Vec<(usize, usize)>), ReadError> {
    let facts = |program: &OfProgram<'_, '_>| -> Result<_, ReadError> {
        let mut all = Vec::new();
        for plan in program.program.execution_plan.iter().flat_map(|plans| plans.iter()) {
            let plan = plan?;
            let mut size = vec![count(&plan.values), items(&plan.inputs).count(), items(&plan.outputs).count()];
            for chain in plan.chains.iter().flat_map(|rows| rows.iter()) {
                size.push(count(&chain?.instructions));
            }
            all.push((key(plan.name.as_deref()), key(size)));
        }
        Ok(all)
    };
    let (ours, theirs) = (facts(left)?, facts(right)?);
    let mut named: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (index, (name, _)) in theirs.iter().enumerate() {
        named.entry(*name).or_default().push_back(index);
    }
    let mut pairs: Vec<Pair> = Vec::new();
    let mut free_a = Vec::new();
    for (index, (name, _)) in ours.iter().enumerate() {
        match named.get_mut(name).and_then(VecDeque::pop_front) {
            Some(other) => pairs.push((index, other)),
            None => free_a.push(index),
        }
    }
    let mut free_b: Vec<usize> = named.into_values().flatten().collect();
    free_b.sort_unstable();
    let sizes = |free: &[usize], facts: &[(u64, u64)]| free.iter().map(|index| facts[*index].1).collect::<Vec<_>>();
    let by_size = align(&sizes(&free_a, &ours), &sizes(&free_b, &theirs));
    pairs.extend(by_size.iter().map(|(a, b)| (free_a[*a], free_b[*b])));
    let taken: (HashSet<usize>, HashSet<usize>) = pairs.iter().copied().unzip();
    free_a.retain(|index| !taken.0.contains(index));
    free_b.retain(|index| !taken.1.contains(index));
    if free_a.len() == free_b.len() {
        pairs.extend(free_a.drain(..).zip(free_b.drain(..)));
    }
    pairs.sort_unstable();
    let alone = free_a.into_iter().map(|index| (0, index)).chain(free_b.into_iter().map(|index| (1, index)));
    Ok((pairs, alone.collect()))
}
