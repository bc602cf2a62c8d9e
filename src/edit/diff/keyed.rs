//! Differences between bytes that have keys: by key, then by content, then by position.

use std::collections::{HashMap, VecDeque};

use edgepack_format::pte::metadata::{METADATA_PREFIX, MetadataValue};
use edgepack_format::tensor::TensorLayout;

use super::contents::{Contents, Found, Place};
use super::side::{key, sample};
use super::{DiffOptions, Differences, show};
use crate::edit::error::Error;

/// Bytes of settings that are compared by their values; of what is beyond, and of longer ones, bytes are compared.
const SETTINGS: u64 = 1 << 20;
/// Bytes of such a setting.
const SETTING: u64 = 64 << 10;

/// Returns whether a place is a setting whose values are compared, and takes its bytes from the room for them.
fn is_setting(place: Place<'_>, found: [Option<&Found>; 2], room: &mut u64) -> bool {
    let Place::Named(key) = place else { return false };
    let lens = found.map(|found| found.map_or(0, |(content, _)| content.len()));
    let len = lens.iter().fold(0u64, |sum, len| sum.saturating_add(*len));
    let is = key.starts_with(METADATA_PREFIX) && len <= (*room).min(SETTING);
    *room -= if is { len } else { 0 };
    is
}

impl Differences {
    /// Compares all bytes that have a key or a path.
    pub(super) fn contents(
        &mut self,
        left: &impl Contents,
        right: &impl Contents,
        options: &DiffOptions,
    ) -> Result<(), Error> {
        // Many keys may have one range: what was alike once is not read again.
        let mut alike = HashMap::new();
        let mut room = SETTINGS;
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        left.each(&mut |place, mine| match (&mine, right.find(place)?) {
            (_, other) if is_setting(place, [Some(&mine), other.as_ref()], &mut room) => {
                self.setting(&place.path(), Some(&mine), other.as_ref())
            }
            ((content, layout), Some((other, their))) if *layout == their => {
                let places = content.place().zip(other.place());
                let places = places.map(|places| (places, layout.as_ref().map(TensorLayout::scalar_type)));
                if places.is_some_and(|places| alike.contains_key(&places)) {
                    return Ok(());
                }
                let before = self.list.len();
                self.one(&place.path(), &mine, &(other.clone(), their), options)?;
                if let (Some(places), true) = (places, self.list.len() == before) {
                    // Held, so that no other source comes to be at its address.
                    alike.insert(places, (content.clone(), other));
                }
                Ok(())
            }
            (_, None) => {
                gone.push((name(place), place.path(), mine));
                Ok(())
            }
            (_, other) => {
                self.push(place.path(), show(Some(&mine)), show(other.as_ref()));
                Ok(())
            }
        })?;
        right.each(&mut |place, found| {
            match left.find(place)? {
                Some(_) => {}
                None if is_setting(place, [None, Some(&found)], &mut room) => {
                    self.setting(&place.path(), None, Some(&found))?;
                }
                None => new.push((name(place), place.path(), found)),
            }
            Ok(())
        })?;
        self.one_sided(gone, new, options)
    }

    /// Compares two settings by their values. One that is gone is not looked for under another name.
    fn setting(&mut self, path: &str, mine: Option<&Found>, other: Option<&Found>) -> Result<(), Error> {
        let read = |found: Option<&Found>| match found {
            Some((content, _)) => content.read().map(|bytes| Some(bytes.into_owned())).map_err(Error::io(path)),
            None => Ok(None),
        };
        let (mine, other) = (read(mine)?, read(other)?);
        if mine != other {
            let shown = |bytes: Option<Vec<u8>>| match bytes.map(|bytes| MetadataValue::decode(&bytes)) {
                None => "absent".to_owned(),
                Some(Ok(value)) => value.to_string(),
                Some(Err(error)) => format!("no setting: {error}"),
            };
            self.push(path.to_owned(), shown(mine), shown(other));
        }
        Ok(())
    }

    fn one(&mut self, path: &str, mine: &Found, other: &Found, options: &DiffOptions) -> Result<(), Error> {
        match &mine.1 {
            Some(layout) => self.elements(path, layout, &mine.0, &other.0, options),
            None => self.bytes(path, &mine.0, &other.0),
        }
    }

    /// Looks for what either side has alone by another key.
    fn one_sided(&mut self, gone: Vec<Keyed>, new: Vec<Keyed>, options: &DiffOptions) -> Result<(), Error> {
        let content = |found: &Found| {
            let shape = found.1.as_ref().map(|layout| (layout.scalar_type().0, layout.sizes().to_vec()));
            key((shape, sample(Some(found.0.clone()))))
        };
        let mut there: HashMap<u64, VecDeque<usize>> = HashMap::new();
        if !gone.is_empty() {
            for (index, (_, _, found)) in new.iter().enumerate().filter(|(_, (name, ..))| name.is_some()) {
                there.entry(content(found)).or_default().push_back(index);
            }
        }
        let mut taken = vec![false; new.len()];
        let mut lost = Vec::new();
        for (name, path, found) in gone {
            let waiting = name.as_ref().and_then(|_| there.get_mut(&content(&found)));
            let same = match waiting.as_ref().and_then(|waiting| new.get(*waiting.front()?)) {
                Some((_, _, other)) => found.1 == other.1 && found.0.same(&other.0).map_err(Error::io(&path))?,
                None => false,
            };
            match waiting.filter(|_| same).and_then(VecDeque::pop_front) {
                Some(index) => {
                    taken[index] = true;
                    self.renamed(&path, name, new[index].0.clone());
                }
                None => lost.push((name, path, found)),
            }
        }
        let mut taken = taken.into_iter();
        let mut added = new;
        added.retain(|_| !taken.next().unwrap_or(false));
        let pairs = lost.len() == added.len()
            && lost.iter().zip(&added).all(|((a, _, ours), (b, _, theirs))| {
                a.is_some() && b.is_some() && ours.1 == theirs.1 && ours.0.len() == theirs.0.len()
            });
        if !pairs {
            lost.into_iter().for_each(|(_, path, found)| self.push(path, show(Some(&found)), show(None)));
            added.into_iter().for_each(|(_, path, found)| self.push(path, show(None), show(Some(&found))));
            return Ok(());
        }
        for ((name, path, found), (other_name, _, other)) in lost.into_iter().zip(added) {
            let before = self.list.len();
            let (Some(a), Some(b)) = (&name, &other_name) else { continue };
            self.one(&format!("named_data[{a:?}→{b:?}]"), &found, &other, options)?;
            if self.list.len() == before {
                // Alike within the tolerance.
                self.renamed(&path, name, other_name);
            } else {
                self.keys.insert(b.clone(), a.clone());
            }
        }
        Ok(())
    }

    fn renamed(&mut self, path: &str, from: Option<String>, to: Option<String>) {
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        self.push(path.to_owned(), format!("key {from:?}"), format!("key {to:?}, with the same bytes"));
        self.keys.insert(to, from);
    }
}

/// A key if there is one, the path of what it names, and its bytes.
type Keyed = (Option<String>, String, Found);

fn name(place: Place<'_>) -> Option<String> {
    match place {
        Place::Named(key) => Some(key.to_owned()),
        _ => None,
    }
}
