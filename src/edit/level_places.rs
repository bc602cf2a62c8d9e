//! Places in every level of a compiled package, and in the model around packages.
//!
//! Each level is a flatbuffer of its own with a layout of its own. Invariant: places that [`PackagePlaces::of`] and
//! [`ModelPlaces::of`] return give the bytes they were read from.

use edgepack_format::darwinn::{
    Accept, Executable, IDENTIFIER, MultiExecutable, Package, PackageRef, SerializedPackage,
};
use edgepack_format::limits::Limits;
use edgepack_format::row::{Blob, Rows, Table as _};
use edgepack_format::tflite::{Model, verify};
use edgepack_format::wire;
use serde::{Deserialize, Serialize};

use super::compiled::{CompiledModel, CompiledPackage};
use super::error::Error;
use super::flat::{Flat, agrees, placed};
use super::model_rows::{ModelRows, OperatorOptions};

/// Places in the levels of a package.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackagePlaces {
    package: Flat,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    multi_executable: Option<Flat>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    executables: Vec<Flat>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chips: Vec<PackagePlaces>,
}

fn other(what: &str) -> Error {
    Error::refused("layout", format!("{what} of the file cannot be said by places"))
}

impl PackagePlaces {
    /// Places in a package of these bytes.
    pub(super) fn of(package: &CompiledPackage<'_>, bytes: &[u8]) -> Result<Self, Error> {
        let places = Self::read(&PackageRef::reopen(bytes)?)?;
        match places.place(package)? == bytes {
            true => Ok(places),
            false => Err(other("a byte")),
        }
    }

    fn read(package: &PackageRef<'_>) -> Result<Self, Error> {
        let multi = package.multi_executable_bytes();
        let multi_executable = match package.multi_executable() {
            Some(_) => Some(Flat::of(&MultiExecutable::decode(wire::Table::root(multi)?)?, multi)?),
            None => None,
        };
        let executables = package.executables().iter().map(|one| Flat::of(one.row(), one.bytes()));
        Ok(PackagePlaces {
            package: Flat::of(package.package(), package.bytes())?,
            multi_executable,
            executables: executables.collect::<Result<_, _>>()?,
            chips: package.chips().iter().map(Self::read).collect::<Result<_, _>>()?,
        })
    }

    /// Puts a package at these places; the error says why it does not fit.
    pub(super) fn place(&self, package: &CompiledPackage<'_>) -> Result<Vec<u8>, Error> {
        let mut row: Package<'_> = package.row.clone();
        let rows = package.executables.as_deref().unwrap_or_default();
        if rows.len() != self.executables.len() || package.executables.is_some() != self.multi_executable.is_some() {
            let message = format!("{} executables, in the layout {}", rows.len(), self.executables.len());
            return Err(Error::refused("package.executables", message));
        }
        if let Some(multi) = &self.multi_executable {
            let written = self.executables.iter().zip(rows).map(|(flat, row)| executable(flat, row));
            let list = MultiExecutable { serialized_executables: Some(written.collect::<Result<Vec<_>, _>>()?.into()) };
            let bytes = placed(&multi.0, &list, |bytes| agrees(bytes, &list))?;
            row.serialized_multi_executable = Some(Blob(bytes.into()));
        }
        let chips = package.chips.as_deref().unwrap_or_default();
        if chips.len() != self.chips.len() {
            let message = format!("{} packages for chips, in the layout {}", chips.len(), self.chips.len());
            return Err(Error::refused("package.chips", message));
        }
        if package.chips.is_some() {
            let chip = |(places, chip): (&PackagePlaces, &CompiledPackage<'_>)| {
                Ok(SerializedPackage { serialized_package: Some(Blob(places.place(chip)?.into())) })
            };
            let rows = self.chips.iter().zip(chips).map(chip).collect::<Result<Vec<_>, Error>>()?;
            row.multi_chip_package = Some(Rows::from(rows));
        }
        let mut bytes = placed(&self.package.0, &row, |bytes| agrees(bytes, &row))?;
        if let Some(place) = bytes.get_mut(4..8)
            && package.identified != (*place == IDENTIFIER)
        {
            place.copy_from_slice(if package.identified { &IDENTIFIER } else { &[0; 4] });
        }
        Ok(bytes)
    }
}

fn executable(flat: &Flat, row: &Executable<'_>) -> Result<Vec<u8>, Error> {
    placed(&flat.0, row, |bytes| agrees(bytes, row))
}

/// Places in a model and its packages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelPlaces {
    /// Places of the tables.
    tables: Flat,
    /// Starts of the packages in the file.
    starts: Vec<u64>,
    packages: Vec<PackagePlaces>,
}

/// Bytes of the packages of a model, as it was read.
fn lens(packages: &[CompiledPackage<'_>]) -> Result<Vec<usize>, Error> {
    let len = |package: &CompiledPackage<'_>| usize::try_from(package.length);
    packages.iter().map(len).collect::<Result<_, _>>().map_err(|_| Error::refused("package.length", "too many bytes"))
}

/// The file of a model with zeros in the place of its packages.
fn hollow(model: &CompiledModel<'_>, lens: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, piece) in model.around.iter().enumerate() {
        bytes.extend_from_slice(piece.as_slice());
        let len = lens.get(index).filter(|_| index.saturating_add(1) < model.around.len());
        bytes.resize(bytes.len().saturating_add(len.copied().unwrap_or(0)), 0);
    }
    bytes
}

impl ModelPlaces {
    /// Places in a model of these bytes.
    pub(super) fn of(model: &CompiledModel<'_>, bytes: &[u8]) -> Result<Self, Error> {
        let (mut starts, mut packages, mut at) = (Vec::new(), Vec::new(), 0usize);
        let lens = lens(&model.packages)?;
        for ((piece, package), len) in model.around.iter().zip(&model.packages).zip(&lens) {
            at = at.saturating_add(piece.as_slice().len());
            let end = at.saturating_add(*len);
            let place = bytes.get(at..end).ok_or_else(|| other("a package"))?;
            packages.push(PackagePlaces::of(package, place)?);
            starts.push(at as u64);
            at = end;
        }
        let hollow = hollow(model, &lens);
        let verdict = verify::verify(&hollow, &Limits::DEFAULT.unfolding(hollow.len() as u64), Accept::ALL);
        let found = verdict.model.ok_or_else(|| other("a table"))?;
        let end = found.zip().map_or(hollow.len(), |zip| zip.start);
        let tables = hollow.get(..end).unwrap_or_default();
        let row = Model::decode(wire::Table::root(tables)?)?;
        let places = ModelPlaces { tables: Flat::of(&row, tables)?, starts, packages };
        let again = places.around(&places.rows(model)?, &model.packages)?;
        match again.iter().map(Vec::as_slice).eq(model.around.iter().map(Blob::as_slice)) {
            true => Ok(places),
            false => Err(other("a byte")),
        }
    }

    /// Rows of a model of these places.
    pub(super) fn rows(&self, model: &CompiledModel<'_>) -> Result<ModelRows<'static>, Error> {
        let hollow = hollow(model, &lens(&model.packages)?);
        let verdict = verify::verify(&hollow, &Limits::DEFAULT.unfolding(hollow.len() as u64), Accept::ALL);
        let found = verdict.model.ok_or_else(|| other("a table"))?;
        let (tables, behind) = hollow.split_at_checked(self.tables.0.len as usize).ok_or_else(|| other("a table"))?;
        let mut rows = ModelRows {
            model: Model::decode(wire::Table::root(tables)?)?,
            options: Vec::new(),
            behind: Blob(behind.into()),
        };
        for op in found.operators().iter().filter(|op| op.slot.is_some()) {
            let (Some(options), Some(blob)) = (&op.options, hollow.get(op.range.clone())) else { continue };
            let index = |(at, _): (usize, &[u8])| {
                let start = op.range.start.saturating_add(at) as u64;
                self.starts.binary_search(&start).ok()
            };
            let Some(packages) = options.packages().map(index).collect::<Option<Vec<_>>>() else { continue };
            let Some(taken) = OperatorOptions::of((op.subgraph, op.operator), packages, options, blob) else {
                continue;
            };
            let graphs = rows.model.subgraphs.as_mut().map(|graphs| graphs.to_mut()).transpose()?;
            let graph = graphs.and_then(|graphs| graphs.get_mut(op.subgraph));
            let rows_of = graph.and_then(|graph| graph.operators.as_mut()).map(|list| list.to_mut()).transpose()?;
            if let Some(row) = rows_of.and_then(|list| list.get_mut(op.operator)) {
                row.custom_options = None;
            }
            rows.options.push(taken);
        }
        // What borrows the hollow file becomes its own.
        Ok(serde_json::from_value(serde_json::to_value(&rows)?)?)
    }

    /// The bytes around the packages; the error says why the rows do not fit.
    pub(super) fn around(&self, rows: &ModelRows<'_>, packages: &[CompiledPackage<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        let lens = lens(packages)?;
        if lens.len() != self.starts.len() {
            let message = format!("{} packages, in the layout {}", lens.len(), self.starts.len());
            return Err(Error::refused("model.packages", message));
        }
        let row = rows.whole(&lens)?;
        let mut bytes = placed(&self.tables.0, &row, |bytes| agrees(bytes, &row))?;
        bytes.extend_from_slice(rows.behind.as_slice());
        let (mut around, mut from) = (Vec::new(), 0usize);
        for (start, len) in self.starts.iter().zip(&lens) {
            let start = usize::try_from(*start).unwrap_or(usize::MAX);
            let end = start.saturating_add(*len);
            let (before, place) = (bytes.get(from..start), bytes.get(start..end));
            let (Some(before), true) = (before, place.is_some_and(|place| place.iter().all(|byte| *byte == 0))) else {
                return Err(Error::refused("places.model.starts", format!("no package of {len} bytes is at {start}")));
            };
            around.push(before.to_vec());
            from = end;
        }
        around.push(bytes.get(from..).unwrap_or_default().to_vec());
        Ok(around)
    }

    /// Puts a model at these places; the error says why it does not fit.
    pub(super) fn place(&self, model: &CompiledModel<'_>) -> Result<Vec<u8>, Error> {
        let around = match &model.rows {
            Some(rows) => self.around(rows, &model.packages)?,
            None => model.around.iter().map(|piece| piece.as_slice().to_vec()).collect(),
        };
        let [pieces @ .., last] = around.as_slice() else {
            return Err(Error::refused("model.around", "there is nothing around the packages"));
        };
        if pieces.len() != model.packages.len() || pieces.len() != self.packages.len() {
            let message = format!("{} pieces around {} packages", around.len(), model.packages.len());
            return Err(Error::refused("model.around", message));
        }
        let mut bytes = Vec::new();
        for ((piece, package), places) in pieces.iter().zip(&model.packages).zip(&self.packages) {
            let written = places.place(package)?;
            if written.len() as u64 != package.length {
                let message = format!("{} bytes, the package had {}", written.len(), package.length);
                return Err(Error::refused("package.length", message));
            }
            bytes.extend_from_slice(piece);
            bytes.extend(written);
        }
        bytes.extend_from_slice(last);
        Ok(bytes)
    }
}
