//! Named data of each type of field.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use bytemuck::Pod;
use half::{bf16, f16};

use super::{Lookup, NamedDataErrors, NamedItem, NamedValue, Place, Problem, Sink, StoreError, tensors};
use crate::row::Blob;
use crate::scalar::{Bool, Element};
use crate::tensor::{Dims, LayoutError, TensorBuf, TensorView};

/// The sizes `sizes` with one more behind them.
fn with<T: Copy + Default, E>(sizes: &Dims<T>, size: T, place: &Place<'_>) -> Result<Dims<T>, StoreError<E>> {
    let mut longer = *sizes;
    match longer.push(size) {
        Some(()) => Ok(longer),
        None => {
            Err(StoreError::Layout { key: place.key().into(), error: LayoutError::Rank(sizes.len().saturating_add(1)) })
        }
    }
}

/// Items of a list that are no numbers: each under its index.
pub fn put_items<'a, 's, T: NamedValue<'a>, S: Sink<'s>>(
    list: &'s [T],
    sizes: &Dims,
    place: &Place<'_>,
    sink: &mut S,
) -> Result<(), StoreError<S::Error>> {
    list.iter().enumerate().try_for_each(|(index, item)| item.put(&item_place(place, sizes, index), sink))
}

/// The place of item `index`, counted through all dimensions of a list with these sizes.
fn item_place<'p>(place: &Place<'p>, sizes: &Dims, index: usize) -> Place<'p> {
    let mut left = index;
    let mut indices: Dims = Dims::new();
    for &size in sizes.iter().rev() {
        // Sizes of a list that has items are positive, and there are no more of them than a `Dims` holds.
        let _ = indices.push(left.checked_rem(size).unwrap_or(0));
        left = left.checked_div(size).unwrap_or(0);
    }
    indices.iter().rev().fold(place.clone(), |place, index| place.item(&index.to_string()))
}

/// Finds the items of a list that are no numbers.
pub fn take_items<'a, T: NamedValue<'a>>(
    sizes: &Dims<Option<usize>>,
    place: &Place<'_>,
    lookup: &'a dyn Lookup,
    errors: &mut NamedDataErrors,
) -> Option<Vec<T>> {
    let found = match place.count_items(lookup) {
        Ok(found) => found,
        // Of an array all items are looked for, which says what is missing.
        Err(_) if sizes.first().is_some_and(Option::is_some) => 0,
        Err(missing) => {
            errors.push(place.key(), Problem::Gap(missing));
            return None;
        }
    };
    if let Some(Some(want)) = sizes.first().copied()
        && found > want
    {
        errors.push(place.key(), Problem::Items { have: found, want });
        return None;
    }
    let sizes: Dims = Dims::collect(sizes.iter().map(|size| size.unwrap_or(found)))?;
    let count = sizes.iter().try_fold(1usize, |count, &size| count.checked_mul(size))?;
    let mut items = Vec::new();
    let before = errors.as_slice().len();
    for index in 0..count {
        items.extend(T::take(&item_place(place, &sizes, index), lookup, errors));
    }
    (errors.as_slice().len() == before).then_some(items)
}

macro_rules! elements {
    ($($ty:ty),*) => {
        $(impl<'a> NamedValue<'a> for $ty {
            fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
                Self::put_list(core::slice::from_ref(self), &Dims::new(), place, sink)
            }
            fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
                Self::take_list(&Dims::new(), place, lookup, errors)?.pop()
            }
            fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
                has_key(place, lookup)
            }
        }

        impl<'a> NamedItem<'a> for $ty {
            fn put_list<'s, S: Sink<'s>>(
                list: &'s [Self],
                sizes: &Dims,
                place: &Place<'_>,
                sink: &mut S,
            ) -> Result<(), StoreError<S::Error>> {
                tensors::put_elements(list, sizes, place, sink)
            }
            fn take_list(
                sizes: &Dims<Option<usize>>,
                place: &Place<'_>,
                lookup: &'a dyn Lookup,
                errors: &mut NamedDataErrors,
            ) -> Option<Vec<Self>> {
                take_elements(sizes, place, lookup, errors)
            }
            fn is_list_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
                has_key(place, lookup)
            }
        })*
    };
}

elements!(u8, i8, i16, i32, i64, f16, f32, f64, Bool, bf16, u16, u32, u64);

/// An unreadable key is there too.
fn has_key(place: &Place<'_>, lookup: &dyn Lookup) -> bool {
    !matches!(lookup.find(place.key()), Ok(None))
}

fn take_elements<T: Element + Pod>(
    sizes: &Dims<Option<usize>>,
    place: &Place<'_>,
    lookup: &dyn Lookup,
    errors: &mut NamedDataErrors,
) -> Option<Vec<T>> {
    let bytes = tensors::take::<T>(Some(sizes), place, lookup, errors)?.in_order(place, errors)?;
    let elements: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
    // A shape may be another than the type's, but not its number of elements.
    if tensors::fill(sizes, elements.len()).is_none() {
        let want = format!("{sizes:?}");
        errors.push(place.key(), Problem::Sizes { have: elements.len().to_string(), want });
        return None;
    }
    Some(elements)
}

impl<'a, T: NamedItem<'a>, const N: usize> NamedValue<'a> for [T; N] {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        Self::put_list(core::slice::from_ref(self), &Dims::new(), place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        Self::take_list(&Dims::new(), place, lookup, errors)?.pop()
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        T::is_list_present(place, lookup)
    }
}

impl<'a, T: NamedItem<'a>, const N: usize> NamedItem<'a> for [T; N] {
    fn put_list<'s, S: Sink<'s>>(
        list: &'s [Self],
        sizes: &Dims,
        place: &Place<'_>,
        sink: &mut S,
    ) -> Result<(), StoreError<S::Error>> {
        T::put_list(list.as_flattened(), &with(sizes, N, place)?, place, sink)
    }
    fn take_list(
        sizes: &Dims<Option<usize>>,
        place: &Place<'_>,
        lookup: &'a dyn Lookup,
        errors: &mut NamedDataErrors,
    ) -> Option<Vec<Self>> {
        let sizes = match with::<_, ()>(sizes, Some(N), place) {
            Ok(sizes) => sizes,
            Err(_) => {
                errors.push(place.key(), Problem::Layout(LayoutError::Rank(sizes.len().saturating_add(1))));
                return None;
            }
        };
        // How many arrays there are says what is before their own size; if that is open, their items do.
        let known = sizes.iter().rev().skip(1).try_fold(1usize, |count, size| count.checked_mul((*size)?));
        let items = T::take_list(&sizes, place, lookup, errors)?;
        let count = known.or_else(|| items.len().checked_div(N)).unwrap_or(0);
        let mut items = items.into_iter();
        let mut arrays = Vec::new();
        for _ in 0..count {
            arrays.push(<[T; N]>::try_from(items.by_ref().take(N).collect::<Vec<T>>()).ok()?);
        }
        Some(arrays)
    }
    fn is_list_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        T::is_list_present(place, lookup)
    }
}

impl<'a, T: NamedItem<'a>> NamedValue<'a> for Vec<T> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        T::put_list(self, &with(&Dims::new(), self.len(), place)?, place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        T::take_list(&Dims::filled(None, 1)?, place, lookup, errors)
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        T::is_list_present(place, lookup)
    }
}

impl<'a, T: NamedValue<'a>> NamedValue<'a> for Option<T> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        self.as_ref().map_or(Ok(()), |value| value.put(place, sink))
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        if T::is_present(place, lookup) { T::take(place, lookup, errors).map(Some) } else { Some(None) }
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        T::is_present(place, lookup)
    }
}

impl<'a, T: Element + Pod> NamedValue<'a> for &'a [T] {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        tensors::put_elements(self, &with(&Dims::new(), self.len(), place)?, place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        let bare = tensors::take::<T>(Some(&Dims::filled(None, 1)?), place, lookup, errors)?;
        let bytes = bare.in_order(place, errors)?;
        match bytemuck::try_cast_slice(bytes) {
            Ok(elements) => Some(elements),
            Err(_) => {
                errors.push(place.key(), Problem::Layout(LayoutError::Misaligned(align_of::<T>())));
                None
            }
        }
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        has_key(place, lookup)
    }
}

impl<'a, T: Element + Pod> NamedValue<'a> for TensorView<'a, T> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        tensors::put_tensor(self.data(), self.layout(), place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        tensors::take::<T>(None, place, lookup, errors)?.view(place, errors)
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        has_key(place, lookup)
    }
}

impl<'a> NamedValue<'a> for TensorView<'a> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        tensors::put_tensor(self.data(), self.layout(), place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        tensors::take_untyped(place, lookup, errors)
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        has_key(place, lookup)
    }
}

impl<'a, T: Element + Pod> NamedValue<'a> for TensorBuf<T> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        tensors::put_tensor(self.data(), self.layout(), place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        let bare = tensors::take::<T>(None, place, lookup, errors)?;
        let elements = bytemuck::pod_collect_to_vec(bare.data);
        let tensor = TensorBuf::with_layout(bare.layout, elements);
        tensor.map_err(|error| errors.push(place.key(), Problem::Layout(error))).ok()
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        has_key(place, lookup)
    }
}

impl<'a> NamedValue<'a> for Blob<'a> {
    fn put<'s, S: Sink<'s>>(&'s self, place: &Place<'_>, sink: &mut S) -> Result<(), StoreError<S::Error>> {
        tensors::put(self.as_slice(), None, place, sink)
    }
    fn take(place: &Place<'_>, lookup: &'a dyn Lookup, errors: &mut NamedDataErrors) -> Option<Self> {
        tensors::find(place, lookup, || "a blob".to_string(), errors).map(|found| Blob(found.data.into()))
    }
    fn is_present(place: &Place<'_>, lookup: &'a dyn Lookup) -> bool {
        has_key(place, lookup)
    }
}

impl<'a, T: Element + Pod> NamedItem<'a> for TensorView<'a, T> {}
impl<'a> NamedItem<'a> for TensorView<'a> {}
impl<'a, T: Element + Pod> NamedItem<'a> for TensorBuf<T> {}
impl<'a, T: Element + Pod> NamedItem<'a> for &'a [T] {}
impl<'a> NamedItem<'a> for Blob<'a> {}
