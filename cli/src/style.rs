//! The few styles of the output. A style is written by `{STYLE}` and ended by `{STYLE:#}`; a [`ColorStream`](crate::ColorStream)
//! without colour drops both.

use anstyle::{AnsiColor, Color, Style};
use edgepack_format::finding::Severity;

/// Headlines.
pub const TITLE: Style = Style::new().bold();
/// Style of details.
pub const DIM: Style = Style::new().dimmed();
/// Names from the file.
pub const NAME: Style = color(AnsiColor::Cyan);
/// Element types and shapes.
pub const SHAPE: Style = color(AnsiColor::Green);
/// Style of success.
pub const GOOD: Style = color(AnsiColor::Green).bold();
/// Style of warnings.
pub const WARN: Style = color(AnsiColor::Yellow).bold();
/// Style of errors.
pub const BAD: Style = color(AnsiColor::Red).bold();

const fn color(color: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(color)))
}

/// The style of a severity.
pub fn severity(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARN,
        Severity::Info => DIM,
    }
}
