//! Findings of a verifier about a file.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::limits::Limits;
use crate::room::NoRoom;

/// Severity of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the file is fine.
    Info,
    /// Legal but unusual, or not portable to every runtime.
    Warning,
    /// The file breaks a rule and is refused.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// A rule of the catalogue: what is asked of a file, and why.
#[derive(Debug)]
pub struct Rule {
    /// Stable identifier, `PTE-…`, `PTD-…`, `BND-…`, `TRC-…`.
    pub id: &'static str,
    /// Severity of a finding of this rule.
    pub severity: Severity,
    /// The rule in one line.
    pub title: &'static str,
    /// Meaning of the rule, the reason for it, and the usual cause of a violation.
    pub explanation: &'static str,
    /// The ExecuTorch error that a runtime reports for it, where there is one.
    pub code: Option<ErrorCode>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Rule {}

/// One broken rule at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Rule that is broken.
    pub rule: &'static Rule,
    /// Path in the structure: `execution_plan[0].values[17].sizes`.
    pub path: String,
    /// Offset in the file, if there is one place.
    pub offset: Option<u64>,
    /// Description of the fault, with both numbers.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.rule.severity, self.rule.id)?;
        f.write_str(if self.path.is_empty() { "file" } else { &self.path })?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset:#x}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Finding {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Finding".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Something wrong with a file, and its place.",
            "type": "object",
            "properties": {
                "rule": { "type": "string", "description": "Id of the rule that is broken." },
                "severity": generator.subschema_for::<Severity>(),
                "path": { "type": "string", "description": "Path in the structure." },
                "offset": { "type": ["integer", "null"], "minimum": 0, "description": "Offset in the file." },
                "message": { "type": "string", "description": "Description of the fault." },
                "code": { "type": ["string", "null"], "description": "Error of ExecuTorch for it." },
            },
            "required": ["rule", "severity", "path", "offset", "message", "code"],
        })
    }
}

impl serde::Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Finding", 6)?;
        out.serialize_field("rule", self.rule.id)?;
        out.serialize_field("severity", &self.rule.severity)?;
        out.serialize_field("path", &self.path)?;
        out.serialize_field("offset", &self.offset)?;
        out.serialize_field("message", &self.message)?;
        out.serialize_field("code", &self.rule.code.map(|code| code.name()))?;
        out.end()
    }
}

/// All findings about a file, in the order they were made. Bounded: beyond [`Limits::findings`] they are only counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    dropped: usize,
    errors: usize,
    most: usize,
    short: bool,
    cut: Option<CutShort>,
}

/// A header that announces more is damaged rather than that of a longer file.
const LONGEST: u64 = 1 << 44;

/// Lengths of a file that ends before what its header announces: most other findings follow from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct CutShort {
    /// Bytes that the file has.
    pub have: u64,
    /// Bytes that it announces.
    pub want: u64,
}

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut short: {} of {} bytes", Grouped(self.have), Grouped(self.want))
    }
}

/// A number in groups of three digits.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.checked_div(1000) {
            Some(thousands @ 1..) => write!(f, "{} {:03}", Grouped(thousands), self.0 % 1000),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl Findings {
    /// No findings yet.
    pub fn new(limits: &Limits) -> Self {
        Findings { most: limits.findings, ..Self::default() }
    }

    /// Returns whether further findings are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= self.most
    }

    /// Adds one.
    pub fn push(&mut self, finding: Finding) {
        if finding.rule.severity == Severity::Error {
            self.errors = self.errors.saturating_add(1);
        }
        if self.is_full() || crate::room::grow(&mut self.list, 1).is_err() {
            self.dropped = self.dropped.saturating_add(1);
        } else {
            self.list.push(finding);
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: Findings) {
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.short |= other.short;
        // Dropped errors of `other` are counted in its `errors` and must not be lost.
        let listed = other.list.iter().filter(|f| f.rule.severity == Severity::Error).count();
        self.errors = self.errors.saturating_add(other.errors.saturating_sub(listed));
        for finding in other.list {
            self.push(finding);
        }
    }

    /// The same for a file that is inside another, below `path` and at `base` there.
    pub fn moved(mut self, path: &str, base: u64) -> Self {
        for finding in &mut self.list {
            let inner = core::mem::take(&mut finding.path);
            finding.path = match inner.as_str() {
                "" => path.into(),
                inner => alloc::format!("{path}.{inner}"),
            };
            finding.offset = finding.offset.map(|offset| offset.saturating_add(base));
        }
        self
    }

    /// Says under the rule about limits, once, that the file was not read to its end because there was no memory.
    #[cold]
    pub fn no_room(&mut self, rule: &'static Rule, path: String, error: NoRoom) {
        if !core::mem::replace(&mut self.short, true) {
            self.push(Finding { rule, path, offset: None, message: alloc::format!("{error} of tables") });
        }
    }

    /// Returns whether memory was missing: the file was not read to its end, and the fault need not be the file's.
    pub fn is_short_of_memory(&self) -> bool {
        self.short
    }

    /// Notes that the file announces a length, in bytes; a file that is shorter is cut short.
    pub fn announce(&mut self, have: u64, want: Option<u64>) {
        self.cut =
            want.filter(|want| (have.saturating_add(1)..=LONGEST).contains(want)).map(|want| CutShort { have, want });
    }

    /// The lengths of a file that is cut short; `None` of other files. It comes before the findings, which follow from it.
    pub fn cut_short(&self) -> Option<CutShort> {
        self.cut
    }

    /// Returns whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of error-level findings, the dropped ones included.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// Returns the number of findings that were counted but not retained.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns the retained findings.
    pub fn as_slice(&self) -> &[Finding] {
        &self.list
    }

    /// Retained findings, in order.
    pub fn iter(&self) -> core::slice::Iter<'_, Finding> {
        self.list.iter()
    }

    /// The ExecuTorch error that the first error-level finding stands for; that of missing memory if it was missing.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.short {
            true => Some(ErrorCode::MemoryAllocationFailed),
            false => self.first_error()?.rule.code,
        }
    }

    /// The first error-level finding.
    pub fn first_error(&self) -> Option<&Finding> {
        self.list.iter().find(|finding| finding.rule.severity == Severity::Error)
    }

    /// No findings at all.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.dropped == 0
    }
}

impl<'a> IntoIterator for &'a Findings {
    type Item = &'a Finding;
    type IntoIter = core::slice::Iter<'a, Finding>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cut) = self.cut {
            write!(f, "{cut}")?;
        }
        for (index, finding) in self.list.iter().enumerate() {
            if index > 0 || self.cut.is_some() {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        if self.dropped > 0 {
            write!(f, "\nand {} more", self.dropped)?;
        }
        Ok(())
    }
}

impl core::error::Error for Findings {}

macro_rules! error_codes {
    ($($(#[$meta:meta])* $name:ident = $value:expr,)*) => {
        /// The error codes of the ExecuTorch runtime.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$meta])* $name = $value,)*
        }

        impl ErrorCode {
            /// Every code, by number.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name),*];

            /// Its name as ExecuTorch prints it, without the `Error::`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(ErrorCode::$name => stringify!($name),)*
                }
            }
        }
    };
}

error_codes! {
    /// Success.
    Ok = 0x00,
    /// An invariant of the runtime itself is broken.
    Internal = 0x01,
    /// The object is not in a state in which this call is possible.
    InvalidState = 0x02,
    /// There is no further instruction to step through.
    EndOfMethod = 0x03,
    /// The object has been loaded before.
    AlreadyLoaded = 0x04,
    /// The operation is not supported in this context.
    NotSupported = 0x10,
    /// The operation has not been implemented.
    NotImplemented = 0x11,
    /// One or more arguments are invalid.
    InvalidArgument = 0x12,
    /// A value has another type than expected.
    InvalidType = 0x13,
    /// An operator of the program has no kernel.
    OperatorMissing = 0x14,
    /// The kernel table is full.
    RegistrationExceedingMaxKernels = 0x15,
    /// A kernel is registered already.
    RegistrationAlreadyRegistered = 0x16,
    /// The thing asked for does not exist.
    NotFound = 0x20,
    /// Memory could not be had.
    MemoryAllocationFailed = 0x21,
    /// Data could not be accessed.
    AccessFailed = 0x22,
    /// The program does not follow the format.
    InvalidProgram = 0x23,
    /// A data file does not follow the format or does not match the program.
    InvalidExternalData = 0x24,
    /// A resource is exhausted.
    OutOfResources = 0x25,
    /// A delegate payload is of an incompatible version.
    DelegateInvalidCompatibility = 0x30,
    /// A delegate could not get memory.
    DelegateMemoryAllocationFailed = 0x31,
    /// A delegate handle is stale or wrong.
    DelegateInvalidHandle = 0x32,
}

impl ErrorCode {
    /// The number on the wire.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The code of a number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }

    /// The code of a name, with or without `Error::`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("Error::").unwrap_or(name);
        Self::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
