//! Files of `torch.save`: a pickle, and the storages it names, in a ZIP of their own.
//!
//! Only tensors are taken out of them: by themselves, in a dictionary by name, or inside a tensor that consists of others.

use std::collections::BTreeMap;

use edgepack_format::scalar::ScalarType;

use super::tensors::{Subclass, Weight, Weights};
use super::zip::{Record, Zip};
use crate::error::Error;
use crate::pickle::{self, Id, Pickle, Value};

/// Ceiling of the nesting of tensors that consist of others.
const MAX_DEPTH: usize = 4;

/// Element types of saved tensors, with the class of their storage if they have one of their own.
const TYPES: [(&str, ScalarType); 18] = [
    ("ByteStorage", ScalarType::BYTE),
    ("CharStorage", ScalarType::CHAR),
    ("ShortStorage", ScalarType::SHORT),
    ("IntStorage", ScalarType::INT),
    ("LongStorage", ScalarType::LONG),
    ("HalfStorage", ScalarType::HALF),
    ("FloatStorage", ScalarType::FLOAT),
    ("DoubleStorage", ScalarType::DOUBLE),
    ("ComplexFloatStorage", ScalarType::COMPLEX_FLOAT),
    ("ComplexDoubleStorage", ScalarType::COMPLEX_DOUBLE),
    ("BoolStorage", ScalarType::BOOL),
    ("BFloat16Storage", ScalarType::BFLOAT16),
    ("", ScalarType::UINT16),
    ("", ScalarType::UINT32),
    ("", ScalarType::UINT64),
    ("", ScalarType::FLOAT8_E4M3FN),
    ("", ScalarType::FLOAT8_E5M2),
    ("", ScalarType::COMPLEX_HALF),
];

/// The names of the storage of a type, if there is one of it, and of the type.
pub(super) fn type_names(scalar_type: ScalarType) -> Option<(&'static str, &'static str)> {
    let (storage, _) = TYPES.iter().find(|(_, known)| *known == scalar_type)?;
    Some((*storage, scalar_type.names()?.torch))
}

/// One such file.
pub(super) struct SavedFile<'a> {
    zip: Zip<'a>,
    pickle: Pickle,
    name: String,
}

/// Value of the pickle, as it is read.
enum Loaded<'a> {
    Tensor(Weight<'a>),
    Subclass(Subclass<'a>),
}

impl<'a> SavedFile<'a> {
    pub(super) fn new(around: &Zip<'a>, record: &Record) -> Result<Self, Error> {
        let zip = around.nested(record)?;
        let name = record.name.clone();
        zip.check_byte_order().map_err(|error| error.of_record(&name))?;
        let code = zip.record("data.pkl").ok_or_else(|| Error::record(&name, "it has no record `data.pkl`"))?;
        let bytes = zip.bytes(code, pickle::MAX_LEN)?;
        let pickle = pickle::read(&bytes).map_err(|error| match error {
            pickle::Error::Memory(error) => Error::Memory(error),
            wrong => Error::record(format!("{name}/data.pkl"), wrong),
        })?;
        Ok(SavedFile { zip, pickle, name })
    }

    /// Adds the tensors of a dictionary: parameters and buffers, or constants.
    pub(super) fn tensors(&self, weights: &mut Weights<'a>, state: bool) -> Result<(), Error> {
        let entries = self.pickle.entries(self.pickle.root())?;
        for (name, value) in entries.ok_or_else(|| self.wrong("it is not a dictionary of tensors"))? {
            let about = |error: Error| match error {
                Error::Memory(error) => Error::Memory(error),
                error => Error::record(&self.name, format!("`{name}`: {error}")),
            };
            match self.load(value, 0).map_err(about)? {
                Loaded::Subclass(subclass) => drop(weights.subclasses.insert(name.to_owned(), subclass)),
                Loaded::Tensor(weight) => {
                    let table = if state { &mut weights.state } else { &mut weights.constants };
                    table.insert(name.to_owned(), weight);
                }
            }
        }
        Ok(())
    }

    /// The tensor that the file is of, which consists of others.
    pub(super) fn subclass(&self, is_param: bool) -> Result<Subclass<'a>, Error> {
        match self.load(self.pickle.root(), 0)? {
            Loaded::Subclass(subclass) => Ok(Subclass { is_param, ..subclass }),
            Loaded::Tensor(weight) => {
                let tensors = BTreeMap::from([(String::new(), weight)]);
                Ok(Subclass { class: "torch.Tensor".to_owned(), is_param, tensors })
            }
        }
    }

    fn wrong(&self, message: impl ToString) -> Error {
        Error::record(&self.name, message)
    }

    fn load(&self, id: Id, depth: usize) -> Result<Loaded<'a>, Error> {
        match self.pickle.made(id) {
            Some((name, arguments)) => self.construct(name, arguments, depth),
            None => Err(self.wrong(format!("{:?} where a tensor is expected", self.pickle.value(id)))),
        }
    }

    /// Returns the value that a constructor would make of its arguments.
    fn construct(&self, name: &str, arguments: &[Id], depth: usize) -> Result<Loaded<'a>, Error> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(format!("tensors nested deeper than {MAX_DEPTH}")));
        }
        let deeper = depth.saturating_add(1);
        match (name, arguments) {
            ("torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state", [data, ..]) => {
                Ok(match self.load(*data, deeper)? {
                    Loaded::Tensor(weight) => Loaded::Tensor(weight.parameter()),
                    Loaded::Subclass(subclass) => Loaded::Subclass(Subclass { is_param: true, ..subclass }),
                })
            }
            ("torch._utils._rebuild_tensor_v2", [storage, offset, sizes, strides, ..]) => {
                self.tensor(*storage, None, [*offset, *sizes, *strides]).map(Loaded::Tensor)
            }
            ("torch._utils._rebuild_tensor_v3", [storage, offset, sizes, strides, _, _, dtype, ..]) => {
                self.tensor(*storage, Some(*dtype), [*offset, *sizes, *strides]).map(Loaded::Tensor)
            }
            ("torch._tensor._rebuild_from_type_v2", [by, class, arguments, state]) => match self.pickle.name(*by) {
                Some("torch._utils._rebuild_wrapper_subclass") => {
                    self.parts(*class, *state, deeper).map(Loaded::Subclass)
                }
                // A plain tensor with notes of its own, which say nothing about its elements.
                Some(by) if self.pickle.name(*class) == Some("torch.Tensor") => {
                    let arguments = self.pickle.items(*arguments).unwrap_or_default();
                    self.construct(by, arguments, deeper)
                }
                _ => Err(self.wrong("a tensor of a class that is not known")),
            },
            (name, _) => Err(self.wrong(format!("{name} where a tensor is expected"))),
        }
    }

    /// The tensors in the state of a tensor of this class.
    fn parts(&self, class: Id, state: Id, depth: usize) -> Result<Subclass<'a>, Error> {
        let class = self.pickle.name(class).ok_or_else(|| self.wrong("a class that is not a name"))?;
        let entries = self.pickle.entries(state)?;
        let entries = entries.ok_or_else(|| self.wrong(format!("the state of {class} is not a dictionary")))?;
        let mut tensors = BTreeMap::new();
        for (name, value) in entries {
            let tensor = self.pickle.made(value).is_some_and(|(by, _)| by.contains("._rebuild_"));
            if !tensor {
                continue;
            }
            match self.load(value, depth)? {
                Loaded::Tensor(weight) => drop(tensors.insert(name.to_owned(), weight)),
                Loaded::Subclass(inner) => {
                    tensors.extend(inner.tensors.into_iter().map(|(part, weight)| (format!("{name}.{part}"), weight)));
                }
            }
        }
        Ok(Subclass { class: class.to_owned(), is_param: false, tensors })
    }

    fn tensor(&self, storage: Id, dtype: Option<Id>, view: [Id; 3]) -> Result<Weight<'a>, Error> {
        let Value::Kept(key) = self.pickle.value(storage) else {
            return Err(self.wrong("a tensor whose storage is not in the file"));
        };
        let Some([kind, class, key, ..]) = self.pickle.items(*key) else {
            return Err(self.wrong("a storage that is named by other things than kind, class and key"));
        };
        if self.pickle.text(*kind) != Some("storage") {
            return Err(self.wrong("something kept in the file that is not a storage"));
        }
        let scalar_type = match dtype {
            Some(dtype) => {
                let name = self.pickle.name(dtype).and_then(|name| name.strip_prefix("torch."));
                TYPES.iter().find(|(_, known)| known.names().map(|names| names.torch) == name)
            }
            None => {
                let name = self.pickle.name(*class).and_then(|name| name.strip_prefix("torch."));
                TYPES.iter().find(|(storage, _)| !storage.is_empty() && Some(*storage) == name)
            }
        };
        let (_, scalar_type) =
            scalar_type.ok_or_else(|| self.wrong("a tensor of an element type that is not known"))?;
        let key = self.pickle.text(*key).ok_or_else(|| self.wrong("a storage whose key is not a text"))?;
        let name = format!("data/{key}");
        let record = self.zip.record(&name).ok_or_else(|| self.wrong(format!("it has no record `{name}`")))?;
        let [offset, sizes, strides] = view;
        let numbers = (self.pickle.size(offset), self.pickle.sizes(sizes)?, self.pickle.sizes(strides)?);
        let (Some(offset), Some(sizes), Some(strides)) = numbers else {
            return Err(self.wrong("a tensor whose sizes, strides or offset are below zero or no numbers"));
        };
        Weight::new(self.zip.storage(record), *scalar_type, sizes, strides, offset)
    }
}
