//! Values of a graph and what is known about them.

use edgepack_format::room;
use edgepack_format::scalar::ScalarType;

use super::codes::{self, STRIDED};
use super::{Expr, Interval, Ranges};
use crate::error::Error;
use crate::json::{self, Device};

/// Exporters write this or the number before it for the start of a range that has none.
const NO_END: i64 = -i64::MAX;

/// A value of one graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ValueId(pub(crate) u32);

impl ValueId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A value: what flows between nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Name of the value, unique in its graph.
    pub name: String,
    /// Metadata of the value.
    pub meta: Meta,
}

/// Metadata of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Meta {
    /// Element type, sizes and layout of a tensor.
    Tensor(TensorMeta),
    /// Integer that a node computes, such as a size.
    Int(Size),
    /// Float that a node computes.
    Float(json::SymFloat),
    /// Bool that a node computes.
    Bool(json::SymBool),
    /// An object of this class.
    Object(String),
    /// The document does not say.
    Unknown,
}

impl Meta {
    /// Returns the metadata of a tensor.
    pub fn tensor(&self) -> Option<&TensorMeta> {
        match self {
            Meta::Tensor(meta) => Some(meta),
            _ => None,
        }
    }
}

/// A size, known or a formula.
#[derive(Clone, PartialEq, Debug)]
pub enum Size {
    /// Number, the same in every run.
    Known(i64),
    /// A formula over symbols, and its value at export.
    Symbolic(Expr, Option<i64>),
}

impl Size {
    /// The number, if it is one.
    pub fn known(&self) -> Option<i64> {
        match self {
            Size::Known(number) => Some(*number),
            Size::Symbolic(Expr::Integer(number), _) => Some(*number),
            Size::Symbolic(..) => None,
        }
    }

    /// The number, or the value at export.
    pub fn hint(&self) -> Option<i64> {
        match self {
            Size::Known(number) => Some(*number),
            Size::Symbolic(_, hint) => *hint,
        }
    }

    /// Returns the reason the size is taken to be below zero, if it is.
    ///
    /// A symbol that is a size by itself must not reach below zero at all. A formula may reach below zero by its
    /// bounds, which ignore what the exporter checked; it is refused if all values within its bounds are below zero.
    fn negative(&self, ranges: &Ranges) -> Option<String> {
        if let Some(number) = self.known() {
            return (number < 0).then(|| format!("is {number}"));
        }
        let Size::Symbolic(expr, hint) = self else { return None };
        if let Some(hint) = hint.filter(|hint| *hint < 0) {
            return Some(format!("was {hint} at export"));
        }
        let Interval { min, max } = expr.bounds(ranges);
        if let Some(most) = max.filter(|most| *most < 0) {
            return Some(format!("is {expr}, at most {most}"));
        }
        let least = min.filter(|least| (NO_END.saturating_add(1)..0).contains(least))?;
        matches!(expr, Expr::Symbol(..)).then(|| format!("is {expr}, down to {least}"))
    }

    pub(crate) fn from_document(size: &json::SymInt) -> Result<Self, Error> {
        Ok(match size {
            json::SymInt::AsInt(number) => Size::Known(*number),
            json::SymInt::AsExpr(expression) => {
                let hint = match expression.hint {
                    Some(json::Hint::AsInt(hint)) => Some(hint),
                    _ => None,
                };
                Size::Symbolic(Expr::parse(&expression.expr_str)?, hint)
            }
        })
    }

    pub(crate) fn to_document(&self) -> json::SymInt {
        match self {
            Size::Known(number) => json::SymInt::AsInt(*number),
            Size::Symbolic(expr, hint) => {
                json::SymInt::AsExpr(json::Expression { expr_str: expr.to_string(), hint: hint.map(json::Hint::AsInt) })
            }
        }
    }
}

impl From<i64> for Size {
    fn from(number: i64) -> Self {
        Size::Known(number)
    }
}

/// Metadata of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorMeta {
    /// Element type.
    pub scalar_type: ScalarType,
    /// Sizes.
    pub sizes: Vec<Size>,
    /// Distances between neighbours, in elements.
    pub strides: Vec<Size>,
    /// The first element, in elements from the start of the storage.
    pub storage_offset: Size,
    /// True if the tensor requires a gradient.
    pub requires_grad: bool,
    /// Device that holds the tensor.
    pub device: Device,
    /// The document's number of its layout; 7 is strided.
    pub layout: i64,
}

impl TensorMeta {
    /// A contiguous tensor of these sizes.
    pub fn contiguous(scalar_type: ScalarType, sizes: &[Size]) -> Self {
        TensorMeta {
            scalar_type,
            sizes: sizes.to_vec(),
            strides: dense_strides(sizes, &identity(sizes.len())),
            storage_offset: Size::Known(0),
            requires_grad: false,
            device: Device::cpu(),
            layout: STRIDED,
        }
    }

    /// Returns these sizes with another element type, contiguous.
    pub fn cast(&self, scalar_type: ScalarType) -> Self {
        TensorMeta { scalar_type, requires_grad: false, ..self.clone() }
    }

    /// Returns the strides of a dense tensor of these sizes whose dimensions follow each other in this order in memory,
    /// outermost first.
    pub(crate) fn strides_in(&self, order: &[u8]) -> Vec<Size> {
        dense_strides(&self.sizes, order)
    }

    /// Returns whether a delegate takes or gives the tensor channels-last: by strides that are those, to the digit, where
    /// sizes of 1 leave it open.
    pub(crate) fn is_given_channels_last(&self) -> bool {
        let strides = |order: Vec<u8>| self.strides_in(&order);
        let image = channels_last(self.rank()).filter(|order| order.len() == 4).map(strides);
        let exactly = image.as_ref() == Some(&self.strides) && image != Some(strides(identity(self.rank())));
        self.rank() == 4 && (exactly || self.is_channels_last())
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The sizes, if all are numbers.
    pub fn known_sizes(&self) -> Option<Vec<usize>> {
        self.sizes.iter().map(|size| usize::try_from(size.known()?).ok()).collect()
    }

    /// Returns whether sizes are formulas.
    pub fn is_dynamic(&self) -> bool {
        self.sizes.iter().any(|size| size.known().is_none())
    }

    /// Returns whether the tensor is an ordinary one.
    pub fn is_strided(&self) -> bool {
        self.layout == STRIDED
    }

    /// Returns whether the strides, as far as they are known, are those of channels-last and not of the sizes in order.
    pub fn is_channels_last(&self) -> bool {
        let hints =
            |list: &[Size]| list.iter().map(|size| usize::try_from(size.hint()?).ok()).collect::<Option<Vec<_>>>();
        match (hints(&self.sizes), hints(&self.strides)) {
            (Some(sizes), Some(strides)) => is_channels_last(&sizes, &strides),
            _ => false,
        }
    }

    /// The first size, stride or offset that is below zero, with what it is: no tensor has one, whatever its symbols are
    /// when the program runs.
    pub fn negative(&self, ranges: &Ranges) -> Option<String> {
        let lists = [("size", &self.sizes[..]), ("stride", &self.strides[..])];
        let offset = [("offset", 0, &self.storage_offset)];
        let numbered = lists
            .into_iter()
            .flat_map(|(what, list)| list.iter().enumerate().map(move |(index, size)| (what, index, size)));
        numbered.chain(offset).find_map(|(what, index, size)| {
            let wrong = size.negative(ranges)?;
            Some(if what == "offset" { format!("its offset {wrong}") } else { format!("{what} {index} {wrong}") })
        })
    }

    /// From the document's form, refused if it is below zero somewhere whatever the ranges of symbols are.
    pub(crate) fn from_document(meta: &json::TensorMeta) -> Result<Self, Error> {
        let list = |sizes: &[json::SymInt]| {
            let mut list = room::with_room(sizes.len())?;
            for size in sizes {
                list.push(Size::from_document(size)?);
            }
            Ok::<_, Error>(list)
        };
        let scalar_type = codes::scalar_type(meta.dtype)
            .ok_or_else(|| Error::program("tensor", format!("element type {} is not known", meta.dtype)))?;
        if meta.sizes.len() != meta.strides.len() {
            let message = format!("{} sizes and {} strides", meta.sizes.len(), meta.strides.len());
            return Err(Error::program("tensor", message));
        }
        let meta = TensorMeta {
            scalar_type,
            sizes: list(&meta.sizes)?,
            strides: list(&meta.strides)?,
            storage_offset: Size::from_document(&meta.storage_offset)?,
            requires_grad: meta.requires_grad,
            device: meta.device.clone(),
            layout: meta.layout,
        };
        match meta.negative(&Ranges::new()) {
            Some(message) => Err(Error::Size { place: "tensor".to_owned(), message }),
            None => Ok(meta),
        }
    }

    pub(crate) fn to_document(&self) -> json::TensorMeta {
        json::TensorMeta {
            dtype: codes::scalar_type_code(self.scalar_type).unwrap_or(0),
            sizes: self.sizes.iter().map(Size::to_document).collect(),
            requires_grad: self.requires_grad,
            device: self.device.clone(),
            strides: self.strides.iter().map(Size::to_document).collect(),
            storage_offset: self.storage_offset.to_document(),
            layout: self.layout,
        }
    }
}

/// Returns the strides of dense sizes in an order of dimensions, outermost first.
fn dense_strides(sizes: &[Size], order: &[u8]) -> Vec<Size> {
    let known: Option<Vec<i64>> = sizes.iter().map(Size::known).collect();
    let mut strides = vec![Size::Known(1); sizes.len()];
    let (mut step, mut formula) = (1i64, Expr::Integer(1));
    for dim in order.iter().rev().map(|dim| usize::from(*dim)) {
        let (Some(size), Some(stride)) = (sizes.get(dim), strides.get_mut(dim)) else { continue };
        if let Some(known) = &known {
            *stride = Size::Known(step);
            step = step.saturating_mul(known.get(dim).map_or(1, |size| (*size).max(1)));
            continue;
        }
        *stride = match &formula {
            Expr::Integer(number) => Size::Known(*number),
            formula => Size::Symbolic(formula.clone(), None),
        };
        formula = formula.times(match size {
            Size::Known(number) => Expr::Integer(*number),
            Size::Symbolic(expr, _) => expr.clone(),
        });
    }
    strides
}

/// Returns whether strides are those of channels-last, and not also those of the sizes in order.
fn is_channels_last(sizes: &[usize], strides: &[usize]) -> bool {
    let rank = sizes.len();
    let order = channels_last(rank);
    let (Some(order), false) = (order, fits(sizes, strides, &identity(rank))) else { return false };
    fits(sizes, strides, &order)
}

/// Returns whether strides are those of dense sizes in this order; dimensions of one element may have any stride.
fn fits(sizes: &[usize], strides: &[usize], order: &[u8]) -> bool {
    let mut step = 1usize;
    order.iter().rev().all(|dim| {
        let dim = usize::from(*dim);
        let (size, stride) = (sizes.get(dim).copied().unwrap_or(0), strides.get(dim).copied().unwrap_or(0));
        let fits = size <= 1 || stride == step;
        step = step.saturating_mul(size.max(1));
        fits
    })
}

pub(crate) fn identity(rank: usize) -> Vec<u8> {
    (0..=u8::MAX).take(rank).collect()
}

/// The dim order of channels-last images and volumes.
pub(crate) fn channels_last(rank: usize) -> Option<Vec<u8>> {
    match rank {
        4 => Some(vec![0, 2, 3, 1]),
        5 => Some(vec![0, 2, 3, 4, 1]),
        _ => None,
    }
}

/// The order in which a program stores a tensor of these strides: channels-last stays, the rest becomes contiguous.
pub(crate) fn dim_order_of(sizes: &[usize], strides: &[usize]) -> Vec<u8> {
    match channels_last(sizes.len()) {
        Some(order) if sizes.len() == 4 && is_channels_last(sizes, strides) => order,
        _ => identity(sizes.len()),
    }
}
