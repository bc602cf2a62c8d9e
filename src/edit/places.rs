//! Places of everything in a file, for a file that is to come back byte for byte.
//!
//! Rows say what is in a file; places say where its writer put it. A document is untrusted: what is written at its places
//! is read again, and has the rows it was made of or is not used.

use std::ops::Range;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::content::Content;
use super::error::Error;
use super::file_places::{FilePlaces, Placed};
use super::level_places::{ModelPlaces, PackagePlaces};
use super::model_rows::ModelRows;
use super::root::Root;

/// Places of everything in one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Places(Kind);

/// Places by kind of file. In a document, those of compiled models are in a field of their own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
enum Kind {
    File(FilePlaces),
    Package { package: PackagePlaces },
    Model { model: ModelPlaces },
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // The field tells the kind; errors are those of the kind that was meant.
        let value = serde_json::Value::deserialize(from)?;
        let field = |name: &str| value.get(name).is_some();
        let read = match (field("package"), field("model")) {
            (true, _) => Level::deserialize(&value).map(|Level { package }| Kind::Package { package }),
            (_, true) => Around::deserialize(&value).map(|Around { model }| Kind::Model { model }),
            _ => FilePlaces::deserialize(&value).map(Kind::File),
        };
        read.map_err(D::Error::custom)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Level {
    package: PackagePlaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Around {
    model: ModelPlaces,
}

impl Places {
    /// Places in the file of this head, whose segments with bytes are at these ranges of the file, in their order.
    pub(super) fn of(root: &Root<'_>, head: &[u8], file: &Content, segments: &[Range<u64>]) -> Result<Self, Error> {
        Ok(Places(match root {
            Root::EdgeTpu(package) => Kind::Package { package: PackagePlaces::of(package, head)? },
            Root::Model(model) => Kind::Model { model: ModelPlaces::of(model, head)? },
            _ => Kind::File(FilePlaces::of(root, head, file, segments)?),
        }))
    }

    /// Rows of a model in the place of the bytes around its packages; `None` of other files.
    pub(super) fn rows_of<'a>(&self, root: &Root<'a>) -> Result<Option<ModelRows<'static>>, Error> {
        match (&self.0, root) {
            (Kind::Model { model: places }, Root::Model(model)) if model.rows.is_none() => places.rows(model).map(Some),
            _ => Ok(None),
        }
    }

    /// Puts rows, and segments that end `end` bytes behind the start of the first, at these places; the error says why
    /// they do not fit.
    pub(super) fn place(&self, root: &Root<'_>, end: u64) -> Result<Placed, Error> {
        match (&self.0, root) {
            (Kind::File(places), _) => places.place(root, end),
            (Kind::Package { package: places }, Root::EdgeTpu(package)) => Ok(Placed::whole(places.place(package)?)),
            (Kind::Model { model: places }, Root::Model(model)) => Ok(Placed::whole(places.place(model)?)),
            _ => Err(Error::refused("places", "they are those of another kind of file")),
        }
    }

    /// The bytes around the packages of a model that is in rows.
    pub(super) fn around(&self, root: &Root<'_>) -> Result<Option<Vec<Vec<u8>>>, Error> {
        match (&self.0, root) {
            (Kind::Model { model: places }, Root::Model(model)) => match &model.rows {
                Some(rows) => places.around(rows, &model.packages).map(Some),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }
}
