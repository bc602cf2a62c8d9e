//! Tensors as PyTorch has them: storages, and views of them.
//!
//! A *tensor* of the graph is one or several values: what a call that works in place gives is the tensor it was given.
//! Each tensor shows a *handle*: a storage of its own, or a view of another handle. A storage counts its changes; a view
//! whose storage has changed since it was taken is taken again when it is read.
//!
//! Invariant: what is read for a tensor has the elements that the tensor has at that place of the program; where that is
//! not known, reading is an error.

use std::collections::BTreeMap;

use super::view::Step;
use crate::decompose::maker::Maker;
use crate::error::Error;
use crate::graph::{TensorMeta, ValueId};

/// Ceiling of the number of nested views.
const MOST_VIEWS: usize = 256;

/// Stands for a view that was not taken yet.
const NEVER: u64 = u64::MAX;

/// Base of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Base {
    /// Part that the tensor shows.
    Tensor,
    /// All of the storage that the tensor shows a part of.
    Storage,
}

/// Kind of a handle.
enum Of {
    /// Storage of its own, whose changes are counted.
    Own,
    /// A view of another handle.
    View(usize, Step),
    /// A storage, or a view of one of these storages after this number of changes: it is not known here which.
    Maybe(Vec<(usize, u64)>, String),
}

struct Handle {
    of: Of,
    /// The storage below all views.
    root: usize,
    /// Views below it.
    depth: usize,
    /// Value with the current elements, if the storage has not changed since.
    now: ValueId,
    /// Changes of the storage when `now` was made.
    seen: u64,
    /// Changes of the storage, for one.
    changes: u64,
    meta: TensorMeta,
}

/// All tensors of a graph so far.
#[derive(Default)]
pub(super) struct Storages {
    /// The tensor that a value is.
    tensors: BTreeMap<ValueId, usize>,
    /// The handle that a tensor shows.
    shown: Vec<usize>,
    handles: Vec<Handle>,
}

impl Storages {
    fn show(&mut self, value: ValueId, handle: Handle) -> usize {
        let at = self.handles.len();
        self.handles.push(handle);
        self.tensors.insert(value, self.shown.len());
        self.shown.push(at);
        at
    }

    /// A tensor with a storage of its own.
    pub(super) fn add(&mut self, value: ValueId, meta: TensorMeta) {
        let root = self.handles.len();
        self.show(value, Handle { of: Of::Own, root, depth: 0, now: value, seen: 0, changes: 0, meta });
    }

    /// A tensor that may or may not share the storages of others.
    pub(super) fn add_maybe(&mut self, value: ValueId, meta: TensorMeta, with: &[ValueId], operator: &str) {
        let roots = with.iter().filter_map(|value| self.handle(*value));
        let roots: Vec<(usize, u64)> =
            roots.map(|handle| (handle.root, self.handles.get(handle.root).map_or(0, |root| root.changes))).collect();
        let root = self.handles.len();
        let of = Of::Maybe(roots, operator.to_owned());
        self.show(value, Handle { of, root, depth: 0, now: value, seen: 0, changes: 0, meta });
    }

    /// A view of a tensor or of its whole storage, through all views in between. `taken` says whether the value has its elements
    /// already.
    pub(super) fn add_view(
        &mut self,
        value: ValueId,
        (of, base): (ValueId, Base),
        steps: Vec<Step>,
        meta: TensorMeta,
        place: &str,
        taken: bool,
    ) -> Result<(), Error> {
        let below = self.shown_by(of).and_then(|shown| match base {
            Base::Tensor => Some(shown),
            Base::Storage => self.handles.get(shown).map(|handle| handle.root),
        });
        let Some(mut parent) = below else {
            self.add(value, meta);
            return Ok(());
        };
        let count = steps.len();
        for (index, step) in steps.into_iter().enumerate() {
            let last = index.saturating_add(1) == count;
            let Some(below) = self.handles.get(parent) else { return Ok(()) };
            let (root, depth) = (below.root, below.depth.saturating_add(1));
            if depth > MOST_VIEWS {
                let message = format!("more than {MOST_VIEWS} views of views");
                return Err(Error::unsupported(format!("node `{place}`"), message));
            }
            let changes = self.handles.get(root).map_or(0, |root| root.changes);
            let seen = if last && taken { changes } else { NEVER };
            let of = Of::View(parent, step);
            let handle = Handle { of, root, depth, now: value, seen, changes: 0, meta: meta.clone() };
            parent = match last {
                true => self.show(value, handle),
                false => {
                    self.handles.push(handle);
                    self.handles.len().saturating_sub(1)
                }
            };
        }
        if count == 0 {
            self.same(value, of);
        }
        Ok(())
    }

    /// Another value of a tensor.
    pub(super) fn same(&mut self, value: ValueId, tensor: ValueId) {
        if let Some(tensor) = self.tensors.get(&tensor).copied() {
            self.tensors.insert(value, tensor);
        }
    }

    /// Lets a tensor show a view of what it showed.
    pub(super) fn turn(
        &mut self,
        make: &mut Maker<'_>,
        tensor: ValueId,
        step: Step,
        meta: TensorMeta,
    ) -> Result<(), Error> {
        let Some(at) = self.tensors.get(&tensor).copied() else { return Ok(()) };
        if make.graph.inputs.iter().any(|input| input.value().and_then(|input| self.tensors.get(&input)) == Some(&at)) {
            return Err(make.error("the sizes of an input are changed in place"));
        }
        let place = make.place.clone();
        // A value without a name represents the transformed tensor until it is read.
        let value = make.graph.add_value(&place, meta.clone());
        self.add_view(value, (tensor, Base::Tensor), vec![step], meta, &place, false)?;
        let turned = self.tensors.get(&value).and_then(|turned| self.shown.get(*turned)).copied();
        if let (Some(turned), Some(shown)) = (turned, self.shown.get_mut(at)) {
            *shown = turned;
        }
        Ok(())
    }

    fn shown_by(&self, value: ValueId) -> Option<usize> {
        self.shown.get(*self.tensors.get(&value)?).copied()
    }

    fn handle(&self, value: ValueId) -> Option<&Handle> {
        self.handles.get(self.shown_by(value)?)
    }

    /// Returns the current metadata of a tensor.
    pub(super) fn meta(&self, value: ValueId) -> Option<&TensorMeta> {
        self.handle(value).map(|handle| &handle.meta)
    }

    /// Returns the metadata of the whole storage of a tensor.
    pub(super) fn root(&self, value: ValueId) -> Option<&TensorMeta> {
        let root = self.handle(value)?.root;
        self.handles.get(root).map(|root| &root.meta)
    }

    /// Returns whether a tensor is a storage that was never changed and is not a view.
    pub(super) fn is_whole(&self, value: ValueId) -> bool {
        self.handle(value).is_none_or(|handle| handle.depth == 0)
    }

    /// Returns whether the storage of a tensor has changed.
    pub(super) fn is_changed(&self, value: ValueId) -> bool {
        let root = self.handle(value).and_then(|handle| self.handles.get(handle.root));
        root.is_some_and(|root| root.changes > 0)
    }

    /// Returns the value with the current elements of a tensor.
    pub(super) fn read(&mut self, make: &mut Maker<'_>, value: ValueId) -> Result<ValueId, Error> {
        match self.shown_by(value) {
            Some(handle) => {
                self.check(make, handle)?;
                self.take(make, handle)
            }
            None => Ok(value),
        }
    }

    /// Refuses what rests on something that may have changed without notice.
    fn check(&self, make: &Maker<'_>, handle: usize) -> Result<(), Error> {
        let root = self.handles.get(handle).and_then(|handle| self.handles.get(handle.root));
        let Some(Handle { of: Of::Maybe(roots, operator), .. }) = root else { return Ok(()) };
        let changes = |root: &usize| self.handles.get(*root).map_or(0, |root| root.changes);
        match roots.iter().any(|(root, seen)| changes(root) != *seen) {
            true => Err(make.error(format!("what {operator} gave may share memory with a tensor that changed since"))),
            false => Ok(()),
        }
    }

    /// Takes a view again if its storage has changed.
    fn take(&mut self, make: &mut Maker<'_>, handle: usize) -> Result<ValueId, Error> {
        let lost = || Error::program("storages", "a view of nothing");
        let found = self.handles.get(handle).ok_or_else(lost)?;
        let changes = self.handles.get(found.root).ok_or_else(lost)?.changes;
        let Of::View(parent, step) = &found.of else { return Ok(found.now) };
        if found.seen == changes {
            return Ok(found.now);
        }
        let (parent, step, meta) = (*parent, step.clone(), found.meta.clone());
        let whole = self.take(make, parent)?;
        let now = step.take(make, whole, &meta)?;
        if let Some(found) = self.handles.get_mut(handle) {
            (found.now, found.seen) = (now, changes);
        }
        Ok(now)
    }

    /// Gives a tensor new elements.
    pub(super) fn write(&mut self, make: &mut Maker<'_>, tensor: ValueId, new: ValueId) -> Result<(), Error> {
        let Some(handle) = self.shown_by(tensor) else {
            return Err(make.error("what is changed is not a tensor of the graph"));
        };
        self.check(make, handle)?;
        self.put(make, handle, new)
    }

    fn put(&mut self, make: &mut Maker<'_>, handle: usize, new: ValueId) -> Result<(), Error> {
        let lost = || Error::program("storages", "a view of nothing");
        let found = self.handles.get(handle).ok_or_else(lost)?;
        let root = found.root;
        match &found.of {
            Of::Own => {}
            Of::Maybe(_, operator) => {
                let message =
                    format!("a change of what {operator} gave, which may share memory with what it was given");
                return Err(make.error(message));
            }
            Of::View(parent, step) => {
                let (parent, step) = (*parent, step.clone());
                let whole = self.take(make, parent)?;
                let put = step.put(make, whole, new)?;
                self.put(make, parent, put)?;
            }
        }
        if let Some(storage) = self.handles.get_mut(root)
            && root == handle
        {
            storage.changes = storage.changes.saturating_add(1);
        }
        let changes = self.handles.get(root).map_or(0, |root| root.changes);
        if let Some(found) = self.handles.get_mut(handle) {
            (found.now, found.seen) = (new, changes);
        }
        Ok(())
    }
}
