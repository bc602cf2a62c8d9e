//! Named data held in memory, so that structs can borrow from them.
//!
//! A [`NamedDataMap`] reads on request and releases on drop; a struct that borrows its tensors needs someone to hold
//! them. Each key is read once, when it is first looked for, and held until the holder is dropped.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::OnceLock;

use edgepack_format::named::{Found, Lookup};
use edgepack_format::room;
use edgepack_format::tensor::TensorLayout;

use crate::aligned::AlignedBytes;
use crate::bytes::Bytes;
use crate::named_data::NamedDataMap;

/// Named data as a [`Lookup`], for [`NamedData::load`](edgepack_format::named::NamedData::load).
///
/// ```
/// use edgepack_format::named::NamedData;
/// use edgepack_format::tensor::TensorView;
/// use edgepack_loader::{DataFile, HeldData};
///
/// #[derive(NamedData)]
/// struct Linear<'a> {
///     weight: TensorView<'a, f32>,
///     bias: &'a [f32],
/// }
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"),
/// #     "/../tests/data/corpus/models/external_portable._default_external_constant.ptd");
/// let file = DataFile::open(path)?;
/// let held = HeldData::new(&file);
/// let first = Linear::load_at("net.0", &held)?;
/// assert_eq!(first.weight.layout().sizes()[0], first.bias.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HeldData<'m> {
    map: &'m dyn NamedDataMap,
    held: BTreeMap<String, OnceLock<Result<Held, String>>>,
}

struct Held {
    data: Bytes,
    layout: Option<TensorLayout>,
}

/// Alignment of the largest element type.
const ALIGNMENT: usize = 8;

impl<'m> HeldData<'m> {
    /// Reads nothing yet.
    pub fn new(map: &'m dyn NamedDataMap) -> Self {
        let keys = (0..map.len()).filter_map(|index| map.key(index));
        HeldData { map, held: room::map(keys.map(|key| (key.to_owned(), OnceLock::new()))) }
    }

    fn read(&self, key: &str) -> Result<Held, String> {
        let vanished = || "it is listed, but not there".to_owned();
        let data = self.map.data(key).map_err(|error| error.to_string())?.ok_or_else(vanished)?;
        let layout = self.map.layout(key).map_err(|error| error.to_string())?;
        // Files may pack data as they like; views need addresses that their elements can have.
        let data = if data.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            data
        } else {
            let copy = AlignedBytes::copy_of(&data);
            copy.ok_or_else(|| format!("there is no memory for a copy of {} bytes", data.len()))?.into()
        };
        Ok(Held { data, layout })
    }
}

impl Lookup for HeldData<'_> {
    fn find(&self, key: &str) -> Result<Option<Found<'_>>, String> {
        let Some(held) = self.held.get(key) else { return Ok(None) };
        match held.get_or_init(|| self.read(key)) {
            Ok(held) => Ok(Some(Found { data: &held.data, layout: held.layout.as_ref() })),
            Err(message) => Err(message.clone()),
        }
    }

    fn key_from(&self, from: &str) -> Option<&str> {
        let mut range = self.held.range::<str, _>((Bound::Included(from), Bound::Unbounded));
        range.next().map(|(key, _)| key.as_str())
    }
}
