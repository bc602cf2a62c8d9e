//! Streams of a command: where it writes, with colour or without, and where it reads `-` from.

use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::PathBuf;

use anstream::AutoStream;
use anstream::adapter::StripBytes;

use crate::in_memory::MemoryFiles;

use crate::options::Color;

/// The streams of one invocation.
pub struct Io {
    /// Input that `-` reads.
    pub stdin: Box<dyn Read>,
    /// Stream for results.
    pub stdout: Box<dyn Write>,
    /// Stream for error messages.
    pub stderr: Box<dyn Write>,
    /// True if `stdout` is a terminal: binary data is not written there.
    pub terminal: bool,
    /// True if standard error is a terminal on which a line can be drawn again and again.
    pub progress: bool,
    /// True for `stdout` and for `stderr` if `--color auto` colours that stream.
    pub color: (bool, bool),
    /// Program that runs the code of packages in a process of its own when it is started with [`HELPER`]; without one that
    /// code runs in this process only.
    pub helper: Option<PathBuf>,
    /// Files that names on the command line stand for, instead of those of the system.
    pub files: Option<MemoryFiles>,
}

/// First argument of the program that runs the code of packages.
pub const HELPER: &str = "run-native-code";

impl Io {
    /// Streams of the process, without a program that runs code.
    pub fn standard() -> Io {
        let colored = |choice: anstream::ColorChoice| choice != anstream::ColorChoice::Never;
        Io {
            stdin: Box::new(io::stdin()),
            stdout: Box::new(BufWriter::new(io::stdout())),
            stderr: Box::new(io::stderr()),
            terminal: io::stdout().is_terminal(),
            progress: io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            // Looks at NO_COLOR, CLICOLOR, TERM and at whether the stream is a terminal.
            color: (colored(AutoStream::choice(&io::stdout())), colored(AutoStream::choice(&io::stderr()))),
            helper: None,
            files: None,
        }
    }
}

/// A stream that drops colour codes where no colour is wanted.
pub struct ColorStream {
    stream: Box<dyn Write>,
    color: bool,
    /// State of the escape sequence in which the last write ended.
    state: StripBytes,
}

impl ColorStream {
    /// Over a stream; `auto` is what `--color auto` means for it.
    pub fn new(stream: Box<dyn Write>, color: Color, auto: bool) -> ColorStream {
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => auto,
        };
        ColorStream { stream, color, state: StripBytes::new() }
    }

    /// Returns whether colour is written.
    pub fn has_color(&self) -> bool {
        self.color
    }

    /// The stream itself, for output that is not text.
    pub fn raw(&mut self) -> &mut dyn Write {
        &mut *self.stream
    }
}

impl Write for ColorStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.color {
            return self.stream.write(bytes);
        }
        for plain in self.state.strip_next(bytes) {
            self.stream.write_all(plain)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::BAD;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn colour_is_written_only_where_it_is_wanted() {
        for (color, auto, colored) in
            [(Color::Auto, false, false), (Color::Never, true, false), (Color::Always, false, true)]
        {
            let stream = Shared::default();
            write!(ColorStream::new(Box::new(stream.clone()), color, auto), "a {BAD}é{BAD:#} b").unwrap();
            let written = stream.0.borrow();
            assert_eq!(written.contains(&0x1b), colored);
            assert_eq!(*written == "a é b".as_bytes(), !colored);
        }
    }
}
