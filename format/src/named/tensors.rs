//! One tensor under one key: how it is handed over, and what is asked of it when it is found.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use bytemuck::Pod;

use super::{Entry, Found, Lookup, NamedDataErrors, Place, Problem, Sink, StoreError};
use crate::scalar::{Element, ScalarType};
use crate::tensor::{Dims, LayoutError, TensorLayout, TensorView, is_contiguous};

/// Hands data with a layout, or opaque ones, to a sink.
pub fn put<'s, S: Sink<'s>>(
    data: &'s [u8],
    layout: Option<TensorLayout>,
    place: &Place<'_>,
    sink: &mut S,
) -> Result<(), StoreError<S::Error>> {
    let element = layout.as_ref().and_then(|layout| layout.scalar_type().size()).unwrap_or(1);
    let entry = Entry {
        key: Cow::Owned(place.key().into()),
        data: data.into(),
        layout,
        alignment: place.alignment().max(element as u64),
        external: place.tag().map(|tag| Cow::Owned(tag.into())),
    };
    sink.add(entry).map_err(|error| StoreError::Sink { key: place.key().into(), error })
}

/// Hands over numbers as a contiguous tensor: of the place's shape, or of their own sizes.
pub fn put_elements<'s, T: Element + Pod, S: Sink<'s>>(
    elements: &'s [T],
    sizes: &Dims,
    place: &Place<'_>,
    sink: &mut S,
) -> Result<(), StoreError<S::Error>> {
    let wrong = |error| StoreError::Layout { key: place.key().into(), error };
    let sizes = match place.shape() {
        None => *sizes,
        Some(shape) => fill(shape, elements.len()).ok_or_else(|| StoreError::Shape {
            key: place.key().into(),
            have: elements.len(),
            want: shown(shape),
        })?,
    };
    let layout = TensorLayout::contiguous(T::SCALAR_TYPE, &sizes).map_err(wrong)?;
    put(bytemuck::cast_slice(elements), Some(layout), place, sink)
}

/// Hands over a tensor of any layout; its sizes must be those of the place, if it has any.
pub fn put_tensor<'s, S: Sink<'s>>(
    data: &'s [u8],
    layout: &TensorLayout,
    place: &Place<'_>,
    sink: &mut S,
) -> Result<(), StoreError<S::Error>> {
    match place.shape() {
        Some(shape) if !fits(layout.sizes(), shape) => {
            Err(StoreError::Shape { key: place.key().into(), have: layout.element_count(), want: shown(shape) })
        }
        _ => put(data, Some(layout.clone()), place, sink),
    }
}

/// The data of a key that must be there.
pub fn find<'a>(
    place: &Place<'_>,
    lookup: &'a dyn Lookup,
    expected: impl Fn() -> String,
    errors: &mut NamedDataErrors,
) -> Option<Found<'a>> {
    let problem = match lookup.find(place.key()) {
        Ok(Some(found)) => return Some(found),
        Ok(None) => Problem::Missing { expected: expected() },
        Err(message) => Problem::Unreadable(message),
    };
    errors.push(place.key(), problem);
    None
}

/// A tensor of `T`, of the place's shape if it has one, else of the field's `sizes` as far as these are known; with
/// neither, of any sizes.
pub fn take<'a, T: Element + Pod>(
    sizes: Option<&Dims<Option<usize>>>,
    place: &Place<'_>,
    lookup: &'a dyn Lookup,
    errors: &mut NamedDataErrors,
) -> Option<Bare<'a>> {
    let want = place.shape().or(sizes.map(|sizes| &**sizes));
    let expected = || {
        format!(
            "a tensor of {}{}",
            T::SCALAR_TYPE,
            want.filter(|sizes| !sizes.is_empty()).map_or_else(String::new, shown_of)
        )
    };
    let found = find(place, lookup, expected, errors)?;
    match bare::<T>(&found, want) {
        Ok(bare) => Some(bare),
        Err(problem) => {
            errors.push(place.key(), problem);
            None
        }
    }
}

/// Data with a layout that was checked against the field, their alignment not looked at yet.
pub struct Bare<'a> {
    pub data: &'a [u8],
    pub layout: TensorLayout,
}

fn bare<'a, T: Element>(found: &Found<'a>, want: Option<&[Option<usize>]>) -> Result<Bare<'a>, Problem> {
    let layout = match found.layout {
        Some(layout) if layout.scalar_type() != T::SCALAR_TYPE => {
            return Err(Problem::Element { have: layout.scalar_type(), want: T::SCALAR_TYPE });
        }
        Some(layout) => known(layout, want)?,
        None => guessed(found.data.len(), T::SCALAR_TYPE, size_of::<T>(), want)?,
    };
    match found.data.get(..layout.byte_len()) {
        Some(data) => Ok(Bare { data, layout }),
        None => Err(Problem::Layout(short(found.data, &layout))),
    }
}

fn known(layout: &TensorLayout, want: Option<&[Option<usize>]>) -> Result<TensorLayout, Problem> {
    match want {
        Some(want) if !fits(layout.sizes(), want) => {
            Err(Problem::Sizes { have: format!("{:?}", layout.sizes()), want: shown(want) })
        }
        _ => Ok(layout.clone()),
    }
}

/// The layout of bytes that come without one: contiguous, of the sizes asked for, or a list.
fn guessed(
    bytes: usize,
    scalar_type: ScalarType,
    element: usize,
    want: Option<&[Option<usize>]>,
) -> Result<TensorLayout, Problem> {
    let want = want.unwrap_or(&[None]);
    let count = bytes.checked_div(element).filter(|_| bytes.is_multiple_of(element));
    match count.and_then(|count| fill(want, count)) {
        Some(sizes) => TensorLayout::contiguous(scalar_type, &sizes).map_err(Problem::Layout),
        None => Err(Problem::Bytes { bytes, want: format!("a tensor of {scalar_type}{}", shown_of(want)) }),
    }
}

/// A tensor of whatever type its layout says.
pub fn take_untyped<'a>(
    place: &Place<'_>,
    lookup: &'a dyn Lookup,
    errors: &mut NamedDataErrors,
) -> Option<TensorView<'a>> {
    let found = find(place, lookup, || "a tensor".to_string(), errors)?;
    let view = match found.layout {
        None => Err(Problem::NoLayout(found.data.len())),
        Some(layout) => {
            known(layout, place.shape()).and_then(|layout| TensorView::new(layout, found.data).map_err(Problem::Layout))
        }
    };
    view.map_err(|problem| errors.push(place.key(), problem)).ok()
}

impl<'a> Bare<'a> {
    /// As a list of numbers in index order.
    pub fn in_order(self, place: &Place<'_>, errors: &mut NamedDataErrors) -> Option<&'a [u8]> {
        if is_contiguous(self.layout.dim_order()) {
            return Some(self.data);
        }
        errors.push(place.key(), Problem::DimOrder(self.layout.dim_order().to_vec()));
        None
    }

    /// As a view without a copy.
    pub fn view<T: Element + Pod>(self, place: &Place<'_>, errors: &mut NamedDataErrors) -> Option<TensorView<'a, T>> {
        let view = TensorView::new(self.layout, self.data).and_then(TensorView::typed);
        view.map_err(|error| errors.push(place.key(), Problem::Layout(error))).ok()
    }
}

fn short(data: &[u8], layout: &TensorLayout) -> LayoutError {
    LayoutError::Data { have: data.len() as u64, want: layout.byte_len() as u64 }
}

/// The sizes with the open one, of which there may be one, from the number of elements.
pub fn fill(shape: &[Option<usize>], count: usize) -> Option<Dims> {
    let known = shape.iter().flatten().try_fold(1usize, |product, &size| product.checked_mul(size))?;
    let mut open = shape.iter().filter(|size| size.is_none());
    let rest = match (open.next(), open.next()) {
        (None, _) => (known == count).then_some(1)?,
        // No elements, and nothing to tell the open size by: none of it.
        (Some(_), None) if known == 0 => (count == 0).then_some(0)?,
        (Some(_), None) => count.checked_div(known).filter(|rest| rest.checked_mul(known) == Some(count))?,
        (Some(_), Some(_)) => return None,
    };
    Dims::collect(shape.iter().map(|size| size.unwrap_or(rest)))
}

fn fits(sizes: &[usize], shape: &[Option<usize>]) -> bool {
    sizes.len() == shape.len() && sizes.iter().zip(shape).all(|(size, want)| want.is_none_or(|want| want == *size))
}

/// Sizes as an attribute writes them.
fn shown(shape: &[Option<usize>]) -> String {
    let sizes: alloc::vec::Vec<String> =
        shape.iter().map(|size| size.map_or_else(|| "_".to_string(), |size| size.to_string())).collect();
    format!("[{}]", sizes.join(", "))
}

fn shown_of(shape: &[Option<usize>]) -> String {
    format!(" of sizes {}", shown(shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_size_follows_from_the_count() {
        let fill = |shape: &[Option<usize>], count| fill(shape, count).map(|dims| dims.to_vec());
        assert_eq!(fill(&[], 1), Some([].to_vec()));
        assert_eq!(fill(&[], 2), None);
        assert_eq!(fill(&[Some(2), None], 6), Some([2, 3].to_vec()));
        assert_eq!(fill(&[Some(4), None], 6), None);
        assert_eq!(fill(&[Some(0), None], 0), Some([0, 0].to_vec()));
        assert_eq!(fill(&[Some(0), None], 1), None);
        assert_eq!(fill(&[None, None], 6), None);
        assert_eq!(fill(&[Some(usize::MAX), Some(2)], 6), None);
    }
}
