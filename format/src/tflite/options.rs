//! The custom options of a compiled operator: a map whose keys are digits.
//!
//! Invariant: in [`CustomOptions`] every package is inside the options, and there are as many chips as packages.

use alloc::vec::Vec;
use core::fmt;

use super::flex::{FlexError, FlexType, FlexValue};
use crate::room;

/// Keys: version of the wrapper, chip name, an old separate executable, the package, execution preference, chip codes,
/// further packages.
pub const KEYS: [&str; 7] = ["1", "2", "3", "4", "5", "6", "7"];

/// Content of the options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CustomOptions<'a> {
    /// The keys, with the types of their values.
    pub keys: Vec<(&'a str, FlexType)>,
    /// Width of the root's slot in bytes.
    pub root_width: usize,
    /// Type and width of the root as it is in the options.
    pub root_type: u8,
    /// Version of the wrapper, which no reader compares.
    pub version: Option<i64>,
    /// The chip, in files of 2019.
    pub chip_name: Option<&'a [u8]>,
    /// An executable that older wrappers had apart.
    pub separate: Option<&'a [u8]>,
    /// The package and where it starts.
    pub package: (usize, &'a [u8]),
    /// Preference for its execution: -1 for no wish.
    pub preference: Option<i64>,
    /// A chip code per package.
    pub chips: Option<Vec<i64>>,
    /// Packages beyond the first and where they start.
    pub further: Option<Vec<(usize, &'a [u8])>>,
}

/// Reason options are not those of a compiled operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionsError {
    /// There are none.
    Empty,
    /// They are no FlexBuffer that can be read.
    Malformed(FlexError),
    /// They are something else than a map.
    NotAMap(FlexType),
    /// A value is of another type than its key asks for.
    Type {
        /// Key in the map of options.
        key: &'static str,
        /// The type of its value.
        found: FlexType,
    },
    /// There is no package.
    NoPackage,
    /// There are not as many chip codes as packages.
    Chips {
        /// Chip codes.
        chips: usize,
        /// Packages.
        packages: usize,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionsError::Empty => f.write_str("there are no options"),
            OptionsError::Malformed(error) => error.fmt(f),
            OptionsError::NotAMap(kind) => write!(f, "the root is of type {} ({}), no map", kind.0, kind.name()),
            OptionsError::Type { key, found } => {
                write!(f, "the value of key {key:?} is of type {} ({})", found.0, found.name())
            }
            OptionsError::NoPackage => f.write_str("key \"4\" is absent or its string empty"),
            OptionsError::Chips { chips, packages } => write!(f, "{chips} chip codes for {packages} packages"),
        }
    }
}

impl core::error::Error for OptionsError {}

impl From<FlexError> for OptionsError {
    fn from(error: FlexError) -> Self {
        OptionsError::Malformed(error)
    }
}

type Result<T> = core::result::Result<T, OptionsError>;

impl<'a> CustomOptions<'a> {
    /// Reads options.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(OptionsError::Empty);
        }
        let root = FlexValue::root(bytes)?;
        let map = root.map()?.ok_or(OptionsError::NotAMap(root.kind))?;
        let find = |key: &'static str| {
            let found = map.iter().find(|(found, _)| *found == key);
            found.map(|(_, value)| *value)
        };
        let int = |key| match find(key) {
            Some(value) => value.int()?.ok_or(OptionsError::Type { key, found: value.kind }).map(Some),
            None => Ok(None),
        };
        // The runtime takes strings only; a blob counts as nothing there.
        let string = |key| match find(key) {
            Some(value) => text(key, &value).map(Some),
            None => Ok(None),
        };
        let package = string("4")?.filter(|(_, bytes)| !bytes.is_empty()).ok_or(OptionsError::NoPackage)?;
        let chips = match find("6") {
            Some(value) => Some(each(&list("6", &value)?, code)?),
            None => None,
        };
        // Without chip codes the runtime does not look for further packages.
        let further = match find("7") {
            Some(value) => Some(each(&list("7", &value)?, |item| text("7", item))?),
            None => None,
        };
        let packages = further.as_ref().map_or(0, Vec::len).saturating_add(1);
        if let Some(chips) = chips.as_ref().map(Vec::len).filter(|chips| *chips != packages) {
            return Err(OptionsError::Chips { chips, packages });
        }
        Ok(CustomOptions {
            keys: room::collect(map.iter().map(|(key, value)| (*key, value.kind))).map_err(FlexError::from)?,
            root_width: root.slot_width(),
            root_type: root.packed_type(),
            version: int("1")?,
            chip_name: string("2")?.map(|(_, bytes)| bytes),
            separate: string("3")?.map(|(_, bytes)| bytes),
            package,
            preference: int("5")?,
            chips,
            further,
        })
    }

    /// All packages and where they start.
    pub fn packages(&self) -> impl Iterator<Item = (usize, &'a [u8])> + '_ {
        core::iter::once(self.package).chain(self.further.iter().flatten().copied())
    }
}

fn text<'a>(key: &'static str, value: &FlexValue<'a>) -> Result<(usize, &'a [u8])> {
    let wrong = OptionsError::Type { key, found: value.kind };
    if value.kind != FlexType::STRING {
        return Err(wrong);
    }
    value.data()?.ok_or(wrong)
}

fn list<'a>(key: &'static str, value: &FlexValue<'a>) -> Result<Vec<FlexValue<'a>>> {
    value.vector()?.ok_or(OptionsError::Type { key, found: value.kind })
}

fn each<'a, T>(items: &[FlexValue<'a>], read: impl Fn(&FlexValue<'a>) -> Result<T>) -> Result<Vec<T>> {
    let mut list = room::with_room(items.len()).map_err(FlexError::from)?;
    for item in items {
        list.push(read(item)?);
    }
    Ok(list)
}

fn code(item: &FlexValue<'_>) -> Result<i64> {
    item.int()?.ok_or(OptionsError::Type { key: "6", found: item.kind })
}
